package workflow_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

const fan = `name: fan
description: "A <b>\"fan\"</b> & more \u0007\u202e"
steps:
  - {id: a, uses: transform, with: [1, 2]}
  - {id: b, uses: worker.x, needs: [a], for_each: steps.a.output, max_items: 2}
  - {id: c, uses: approval, needs: [a], if: 'true'}
  - {id: d, uses: connector.shop.update, needs: [a, b, c], action_type: x, with: {target: {entity_type: t,
      entity_ref: r}, change: {}}}
  - {id: e, uses: wait, needs: [a, d], with: {for: 1s}}
`

func fanRun() *gatehouse.Run {
	step := func(key string, status gatehouse.StepStatus) *gatehouse.Step {
		return &gatehouse.Step{ID: "stp_" + key, Key: key, Status: status}
	}
	item := func(key string, status gatehouse.StepStatus) *gatehouse.Step {
		s := step(key, status)
		s.Parent = "stp_b"
		return s
	}
	skipped := step("a", gatehouse.StepSucceeded)
	skipped.Skipped = true
	return &gatehouse.Run{ID: "run_<1>\x1b[2J", Version: 3, Status: gatehouse.RunWaitingApproval, Steps: []*gatehouse.Step{
		skipped, step("b", gatehouse.StepWaiting), item("b[0]", gatehouse.StepSucceeded), item("b[1]", gatehouse.StepRunning),
		step("c", gatehouse.StepWaitingApproval), step("d", gatehouse.StepBlocked), step("e", gatehouse.StepBlocked),
	}}
}

// TestTextDrawing checks the drawing for terminals: implied needs are left out,
// and it has no control characters.
func TestTextDrawing(t *testing.T) {
	t.Parallel()
	d := mustParse(t, fan)
	if diff := cmp.Diff(strings.TrimPrefix(`
fan
 1  ○ a  transform
 2  ○ b  worker.x, for each     ← a
    ○ c  approval, if           ← a
 3  ○ d  connector.shop.update  ← b, c
 4  ○ e  wait                   ← d
`, "\n"), d.Text(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(strings.TrimPrefix(`
fan v3 · run_<1>[2J · waiting_approval
 1  – a  transform              skipped
 2  … b  worker.x, for each     waiting, 1 of 2 items  ← a
    ? c  approval, if           waiting for approval  ← a
 3  · d  connector.shop.update  blocked               ← b, c
 4  · e  wait                   blocked               ← d
`, "\n"), d.Text(fanRun())); diff != "" {
		t.Error(diff)
	}
}

// TestSVG: the drawing is well-formed, has a title and a description, and shows
// every step with its state in words. It contains nothing that a browser would
// run, load or style.
func TestSVG(t *testing.T) {
	t.Parallel()
	d := mustParse(t, fan)
	for _, run := range []*gatehouse.Run{nil, fanRun()} {
		text, elements := readSVG(t, d.SVG(run))
		for _, want := range []string{`A <b>"fan"</b> & more`, "connector.shop.update after b, c"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if elements["rect"] != 5 || elements["desc"] != 1 || elements["title"] != 6 {
			t.Errorf("%v", elements)
		}
		if run == nil {
			continue
		}
		for _, want := range []string{"– a", "skipped", "waiting, 1 of 2 items", "? c", "waiting for approval", "· d",
			"blocked", "run_<1>"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	if s := d.SVG(fanRun()); !strings.Contains(s, `class="wf-step wf-approval wf-waiting-approval"`) ||
		!strings.Contains(s, "stroke-dasharray") || !strings.Contains(s, " 5 steps.") {
		t.Errorf("a state has no class or outline:\n%s", s)
	}
	if s := mustParse(t, "name: one\nsteps:\n  - {id: a, uses: approval}\n").SVG(nil); !strings.Contains(s, "1 step.") {
		t.Errorf("one step:\n%s", s)
	}
}

// readSVG returns all text of a drawing and the number of each kind of element.
func readSVG(tb testing.TB, svg string) (text string, elements map[string]int) {
	tb.Helper()
	elements = make(map[string]int)
	var all strings.Builder
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return all.String(), elements
		}
		if err != nil {
			tb.Fatalf("%v in\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
			switch token.Name.Local {
			case "svg", "title", "desc", "path", "g", "rect", "text":
			default:
				tb.Fatalf("an element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				if n := strings.ToLower(a.Name.Local); n == "style" || strings.HasPrefix(n, "on") || n == "href" {
					tb.Fatalf("an attribute %s", n)
				}
			}
		case xml.CharData:
			all.WriteString(string(token) + "\n")
		case xml.Directive, xml.ProcInst, xml.Comment:
			tb.Fatalf("%T", token)
		}
	}
}

// TestDrawings: both drawings show every step, whatever the graph.
func TestDrawings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		if n := strings.Count(d.Text(nil), "\n"); n != len(d.Steps)+1 {
			t.Fatalf("%d lines for %d steps", n, len(d.Steps))
		}
		if n := strings.Count(d.SVG(nil), "<rect "); n != len(d.Steps) {
			t.Fatalf("%d boxes for %d steps", n, len(d.Steps))
		}
	})
}

// TestDrawLarge: the drawing of a workflow with the most steps, half of which need all earlier ones, stays
// small.
func TestDrawLarge(t *testing.T) {
	t.Parallel()
	lines := make([]string, workflow.MaxSteps)
	for i := range lines {
		var needs []string
		for j := range i {
			if i%2 == 0 || j > i-3 {
				needs = append(needs, fmt.Sprintf("s%d", j))
			}
		}
		lines[i] = fmt.Sprintf("- {id: s%d, uses: worker.x, needs: [%s]}", i, strings.Join(needs, ","))
	}
	d := mustParse(t, steps(lines...))
	if svg := d.SVG(nil); len(svg) > 1<<20 {
		t.Errorf("the drawing has %d bytes", len(svg))
	}
}
