package httpconn

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// maxPages limits Max of a configuration; defaultPages is the default of Max.
const (
	maxPages     = 50
	defaultPages = 10
)

// The ways to the next page, besides a JSON pointer.
const (
	nextLink   = "link"
	nextOffset = "offset"
)

// pages checks the pages of a read-back's configuration, sets their defaults, and stores them in r.
func (b *builder) pages(at string, r *readBack) {
	cfg := r.cfg.Pages
	if cfg == nil {
		return
	}
	p := *cfg
	b.pointer(at+".items", &p.Items)
	switch {
	case p.Next == nextLink && p.Parameter != "":
		b.fail(at+".parameter", errors.New("does not apply with next: link"))
	case p.Next == nextOffset && p.Parameter == "":
		p.Parameter = "offset"
	case p.Next != nextLink && p.Next != nextOffset && !strings.HasPrefix(p.Next, "/"):
		b.fail(at+".next", errors.New("must be link, offset, or a JSON pointer such as /next_cursor"))
	}
	if p.Max == 0 {
		p.Max = defaultPages
	}
	if p.Max < 1 || p.Max > maxPages {
		b.fail(at+".max", fmt.Errorf("must be 1 to %d", maxPages))
	}
	if r.json == nil && r.change == nil {
		b.fail(at, errors.New("needs json or change, to find the effect among the elements"))
	}
	r.pages = &p
}

// elements returns the elements of the list in one answer; without pages, the answer itself.
func (r *readBack) elements(doc answerBody) []answerBody {
	if r.pages == nil {
		return []answerBody{doc}
	}
	list, _ := doc.at(r.pages.Items)
	elements, _ := list.Elements()
	out := make([]answerBody, len(elements))
	for i, e := range elements {
		out[i] = answerBody{e}
	}
	return out
}

// next is the address of the page that follows the page at u; nil after the last page. read is the
// number of elements so far, and here the number of elements on this page. A page of another origin is
// refused, because that origin would get the credentials.
func (p *Pages) next(u *url.URL, a *rest.Answer, doc answerBody, read, here int) (*url.URL, *connector.Error) {
	to := ""
	switch p.Next {
	case nextLink:
		to = linked(a.Header.Values("Link"))
	case nextOffset:
		if here > 0 {
			to = strconv.Itoa(read)
		}
	default:
		switch j, _ := doc.at(Pointer(p.Next)); j {
		case "", "null", "false":
		default:
			to = plain(j)
		}
	}
	if to == "" {
		return nil, nil
	}
	if p.Parameter != "" {
		next, query := *u, u.Query()
		query.Set(p.Parameter, to)
		next.RawQuery = query.Encode()
		return &next, nil
	}
	next, err := u.Parse(to)
	if err != nil || next.Scheme != u.Scheme || !strings.EqualFold(next.Host, u.Host) || next.User != nil {
		return nil, &connector.Error{
			Kind: connector.Terminal, Code: "page_refused",
			Detail: "the address of the next page is malformed, contains a user name, or has another scheme or host than " +
				"the target: " + gatehouse.Quote(clip(to)),
		}
	}
	next.Fragment, next.RawFragment = "", ""
	return next, nil
}

func clip(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}

var (
	linkValue = regexp.MustCompile(`<([^<>]*)>((?:[^",]|"[^"]*")*)`)
	linkRel   = regexp.MustCompile(`(?i);\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))`)
)

// linked is the target of the link with the relation next (RFC 8288); "" for none.
func linked(headers []string) string {
	for _, link := range linkValue.FindAllStringSubmatch(strings.Join(headers, ", "), -1) {
		rel := linkRel.FindStringSubmatch(link[2])
		if rel == nil {
			continue
		}
		for _, name := range strings.Fields(rel[1] + rel[2]) {
			if strings.EqualFold(name, "next") {
				return link[1]
			}
		}
	}
	return ""
}
