package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/gatehouse-dev/gatehouse"
)

// ReadEntries reads exported entries: pages of GET /audit/entries, one entry per
// line, or any mixture. It canonicalizes the bodies again, so changes of white
// space, member order and escapes do not matter. The sequence ends with the first
// error.
func ReadEntries(r io.Reader) iter.Seq2[*gatehouse.Entry, error] {
	return func(yield func(*gatehouse.Entry, error) bool) {
		dec := json.NewDecoder(r)
		for n := 0; ; {
			var v struct {
				Items    []*gatehouse.Entry `json:"items"`
				Index    *int64             `json:"index"`
				Body     gatehouse.JSON     `json:"leaf"`
				LeafHash *gatehouse.Hash    `json:"leaf_hash"`
			}
			err := dec.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			items := v.Items
			switch {
			case err != nil:
			case v.Index != nil && v.LeafHash != nil && v.Body != "" && v.Items == nil:
				items = []*gatehouse.Entry{{Index: *v.Index, Body: v.Body, LeafHash: *v.LeafHash}}
			case v.Items == nil:
				err = errors.New("neither an entry nor a page of entries")
			}
			if err != nil {
				yield(nil, fmt.Errorf("audit: after %d entries: %w", n, err))
				return
			}
			for _, e := range items {
				if e == nil || e.Body == "" {
					yield(nil, fmt.Errorf("audit: after %d entries: an entry without a leaf", n))
					return
				}
				if n++; !yield(e, nil) {
					return
				}
			}
		}
	}
}
