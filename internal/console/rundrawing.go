package console

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/a-h/templ"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// drawnNode is an element of a drawing, or a text when it has no name.
type drawnNode struct {
	name     string
	attr     [][2]string
	text     string
	children []drawnNode
}

// The permitted elements and attributes of a drawing; none of them runs code, loads a file or links
// anywhere.
const (
	drawnElements   = " svg title desc g rect path text "
	drawnAttributes = " class role aria-labelledby viewBox width height font-family fill stroke id d x y rx " +
		"stroke-width stroke-dasharray text-anchor font-size font-weight "
)

// maxDrawnDepth limits the nesting of a drawing.
const maxDrawnDepth = 8

// readDrawing parses a drawing of internal/workflow. The page never contains the text of the drawing
// itself: the drawing is rebuilt from the permitted elements.
func readDrawing(svg string) ([]drawnNode, error) {
	d := xml.NewDecoder(strings.NewReader(svg))
	open := []drawnNode{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		top := &open[len(open)-1]
		switch x := token.(type) {
		case xml.StartElement:
			if !strings.Contains(drawnElements, " "+x.Name.Local+" ") || len(open) > maxDrawnDepth {
				return nil, gatehouse.E(gatehouse.CodeInternal,
					"a drawing has the forbidden element %s, or is nested too deeply", gatehouse.Quote(x.Name.Local))
			}
			n := drawnNode{name: x.Name.Local}
			for _, a := range x.Attr {
				switch {
				case a.Name.Local == "xmlns":
				case a.Name.Space != "", !strings.Contains(drawnAttributes, " "+a.Name.Local+" "):
					return nil, gatehouse.E(gatehouse.CodeInternal, "a drawing has the forbidden attribute %s",
						gatehouse.Quote(a.Name.Local))
				default:
					n.attr = append(n.attr, [2]string{a.Name.Local, a.Value})
				}
			}
			open = append(open, n)
		case xml.EndElement:
			below := &open[len(open)-2]
			below.children = append(below.children, *top)
			open = open[:len(open)-1]
		case xml.CharData:
			top.children = append(top.children, drawnNode{text: string(x)})
		}
	}
	return open[0].children, nil
}

// drawing writes a drawing into a page with every text and attribute escaped. [hostile] shows an
// invisible character in a mark element, which SVG does not have. A drawing therefore shows the code
// point of such a character.
func drawing(nodes []drawnNode) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var b strings.Builder
		writeDrawn(&b, nodes)
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func writeDrawn(b *strings.Builder, nodes []drawnNode) {
	for _, n := range nodes {
		if n.name == "" {
			b.WriteString(templ.EscapeString(card.TerminalLines(n.text)))
			continue
		}
		b.WriteString("<" + n.name)
		for _, a := range n.attr {
			b.WriteString(" " + a[0] + `="` + templ.EscapeString(card.Terminal(a[1])) + `"`)
		}
		b.WriteString(">")
		writeDrawn(b, n.children)
		b.WriteString("</" + n.name + ">")
	}
}
