package llmtest

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// decode reads one JSON value, and refuses members that into does not have.
func decode(body []byte, into any) *refusal {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid("%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("there is more than one JSON value")
	}
	return nil
}

// common checks the fields that both protocols require. most is the highest temperature.
func common(model string, messages int, temperature json.Number, most float64) *refusal {
	switch {
	case model == "":
		return invalid("model: Field required")
	case messages == 0:
		return invalid("messages: at least one message is required")
	}
	if temperature == "" {
		return nil
	}
	if t, err := strconv.ParseFloat(string(temperature), 64); err != nil || t < 0 || t > most {
		return invalid("temperature: must be from 0 to %g", most)
	}
	return nil
}

// text reads a content: a string, or a list of text parts.
func text(content json.RawMessage) (string, *refusal) {
	var s string
	if json.Unmarshal(content, &s) == nil && len(content) > 0 && content[0] == '"' {
		return s, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if bad := decode(content, &parts); bad != nil {
		return "", invalid("content: must be a string or a list of text parts")
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return "", invalid("content: this fake takes text only")
		}
		all.WriteString(p.Text)
	}
	return all.String(), nil
}
