package console

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
)

// at is the time d after the start.
func at(d time.Duration) time.Time {
	return time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).Add(d)
}

func atPtr(d time.Duration) *time.Time { t := at(d); return &t }

// askedRun reads for four seconds, with a failed attempt, and then asks people, who take their time.
func askedRun(days time.Duration) *gatehouse.RunDetail {
	return &gatehouse.RunDetail{
		Run: &gatehouse.Run{CreatedAt: at(0), FinishedAt: atPtr(days + 8*time.Second), Status: gatehouse.RunSucceeded,
			Steps: []*gatehouse.Step{
				{ID: "s1", Key: "read", Uses: "transform", Status: gatehouse.StepSucceeded, Attempts: 2, ReadyAt: atPtr(0),
					StartedAt: atPtr(0), FinishedAt: atPtr(4 * time.Second)},
				{ID: "s2", Key: "ask", Uses: "approval", Status: gatehouse.StepSucceeded, Attempts: 1, ActionID: "a1",
					ReadyAt:   atPtr(4 * time.Second),
					StartedAt: atPtr(4 * time.Second), FinishedAt: atPtr(days + 8*time.Second)},
				{ID: "s3", Key: "never", Status: gatehouse.StepCanceled, FinishedAt: atPtr(days)},
			}},
		Attempts: []*gatehouse.StepAttempt{
			{StepID: "s1", Attempt: 1, StartedAt: at(0), FinishedAt: at(time.Second), Outcome: string(gatehouse.StepRetrying)},
			{StepID: "s1", Attempt: 2, StartedAt: at(2 * time.Second), FinishedAt: at(4 * time.Second),
				Outcome: string(gatehouse.StepSucceeded)},
			{StepID: "s2", Attempt: 1, StartedAt: at(4 * time.Second), FinishedAt: at(5 * time.Second),
				Outcome: string(gatehouse.StepWaitingApproval)},
		},
		Actions: []*gatehouse.Action{{ID: "a1", DecidedAt: atPtr(days + 5*time.Second), DecidedVia: gatehouse.ViaConsole}},
	}
}

func TestTimelineDrawsWaitsShort(t *testing.T) {
	t.Parallel()
	const wait = 40 * time.Second
	d := askedRun(wait)
	x := newTimeline(d, at(1000*time.Hour))
	var phases []runline.Phase
	for _, b := range x.rows[0].bars {
		phases = append(phases, b.phase)
	}
	if !slices.Equal(phases, []runline.Phase{runline.Fails, runline.Queued, runline.Works}) {
		t.Errorf("the first step is drawn as %v", phases)
	}
	// Seven seconds of work, one of queueing, and a wait that is drawn at a quarter of the work's
	// width.
	if x.log || len(x.cuts) != 1 || x.cuts[0].length != wait || x.cutWords() != "40 s" {
		t.Errorf("drawn short: %+v", x.cuts)
	}
	people := x.rows[1].bars[1]
	if people.phase != runline.People || people.width < 15 || people.width > 20 {
		t.Errorf("the wait takes %+v", people)
	}
	if last := x.rows[1].bars[2]; last.phase != runline.Works || last.x+last.width < 99.9 || last.x+last.width > 100.1 {
		t.Errorf("the last bar is %+v", last)
	}
	if want := "succeeded: worked 4 s, waited for people 40 s"; x.rows[1].words != want {
		t.Errorf("read out as %q, want %q", x.rows[1].words, want)
	}
	if len(x.rows[2].bars) != 0 || x.rows[2].words != "canceled" {
		t.Errorf("what never began: %+v", x.rows[2])
	}
	if x.total != wait+8*time.Second {
		t.Errorf("%s in all", x.total)
	}
}

// TestTimelineIsLogarithmic: a wait of more than fifty times the shortest bar makes the axis logarithmic, so
// that both can be seen. Nothing is cut out then, and a bar with room for it shows its length.
func TestTimelineIsLogarithmic(t *testing.T) {
	t.Parallel()
	const days = 50 * time.Hour
	for wait, log := range map[time.Duration]bool{50 * time.Second: false, 52 * time.Second: true, days: true} {
		if x := newTimeline(askedRun(wait), at(1000*time.Hour)); x.log != log || log == (len(x.ticks) == 0) {
			t.Errorf("a wait of %s: logarithmic %t, ticks %v", wait, x.log, x.ticks)
		}
	}
	x := newTimeline(askedRun(days), at(1000*time.Hour))
	first, people, last := x.rows[0].bars[0], x.rows[1].bars[1], x.rows[1].bars[2]
	if len(x.cuts) != 0 || people.width < 40 || first.width < 2 || last.width < 2 {
		t.Errorf("the bars are %+v, %+v, %+v", first, people, last)
	}
	if end := last.x + last.width; end < 99.9 || end > 100.1 || people.x < first.x+first.width {
		t.Errorf("the bars overlap, or end at %f", end)
	}
	if people.label() != "2 d 2 h" || first.label() != "" {
		t.Errorf("the labels are %q and %q", people.label(), first.label())
	}
	if n := len(x.ticks); x.ticks[0].text != "0" || x.ticks[n-1].text != "2 d 2 h" {
		t.Errorf("the ticks are %+v", x.ticks)
	}
}

func TestTimelineOfHundreds(t *testing.T) {
	t.Parallel()
	d := &gatehouse.RunDetail{Run: &gatehouse.Run{CreatedAt: at(0)}}
	for range maxRows + 7 {
		d.Steps = append(d.Steps,
			&gatehouse.Step{Status: gatehouse.StepRunning, ReadyAt: atPtr(0), StartedAt: atPtr(time.Second)})
	}
	if x := newTimeline(d, at(time.Minute)); len(x.rows) != maxRows || x.left != 7 {
		t.Errorf("%d rows, %d left out", len(x.rows), x.left)
	}
	if x := newTimeline(&gatehouse.RunDetail{Run: &gatehouse.Run{}}, at(0)); len(x.rows) != 0 || x.total != 0 {
		t.Errorf("a run without steps is %+v", x)
	}
}

// TestDrawingsHaveNothingElse: a drawing is rebuilt from the permitted elements only.
func TestDrawingsHaveNothingElse(t *testing.T) {
	t.Parallel()
	nodes, err := readDrawing(`<svg viewBox="0 0 1 1"><text x="1">&lt;script&gt;&amp;"</text></svg>`)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	writeDrawn(&b, nodes)
	if want := `<svg viewBox="0 0 1 1"><text x="1">&lt;script&gt;&amp;&#34;</text></svg>`; b.String() != want {
		t.Errorf("drawn as %s", b.String())
	}
	for _, bad := range []string{
		`<svg><script>x</script></svg>`, `<svg onload="x"></svg>`, `<svg><a href="/">x</a></svg>`,
		`<svg><rect style="x"/></svg>`,
		`<svg><foreignObject/></svg>`, `<svg xmlns:xlink="http://www.w3.org/1999/xlink"><rect xlink:href="x"/></svg>`,
		`<svg>`, strings.Repeat("<g>", 20) + strings.Repeat("</g>", 20),
	} {
		if _, err := readDrawing(bad); err == nil {
			t.Errorf("%s is drawn", bad)
		}
	}
}

func TestRawValuesAreBounded(t *testing.T) {
	t.Parallel()
	room := &rawBudget{left: maxRaw}
	if text, more := room.cut(`{"n":1.0}`); text != "{\n  \"n\": 1.0\n}" || more != 0 {
		t.Errorf("%q and %d more", text, more)
	}
	long := gatehouse.StringJSON(strings.Repeat("ü", maxRawValue))
	if text, more := room.cut(long); len(text) > maxRawValue || len(text)+more > len(long)+1 || more == 0 {
		t.Errorf("%d bytes shown, %d more", len(text), more)
	}
	for range 2 * maxRaw / maxRawValue {
		room.cut(`"a value of some length"`)
		room.cut(long)
	}
	if text, more := room.cut(`"x"`); text != "" || more != 3 {
		t.Errorf("with no room left: %q and %d more", text, more)
	}
}

// TestLostAttempt: an attempt whose lease ran out is shown as lost, not by the state of its step.
func TestLostAttempt(t *testing.T) {
	t.Parallel()
	lost := &gatehouse.StepAttempt{Outcome: string(gatehouse.StepRetrying), Code: "lease_expired"}
	if s := attemptState(lost); stateWord(s) != "lost by its worker" || stateTone(s) != "bad" {
		t.Errorf("%s, %s", stateWord(s), stateTone(s))
	}
	failed := &gatehouse.StepAttempt{Outcome: string(gatehouse.StepRetrying), Code: "timeout"}
	if s := attemptState(failed); stateWord(s) != "to be retried" {
		t.Errorf("%s", stateWord(s))
	}
}

// TestWhomAfterAnEscalation: a run's page names everybody whom the question has reached, by role, group and name.
func TestWhomAfterAnEscalation(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{Status: gatehouse.StatusPending, Approval: &gatehouse.Approval{
		Required: 1, Roles: []gatehouse.Role{gatehouse.RoleApprover}, People: []string{"ana"}, Stage: 2,
	}}
	a.Approval.Stages = []gatehouse.Stage{{Who: gatehouse.Audience{People: []string{"ana"}}},
		{Who: gatehouse.Audience{Groups: []string{"finance"}}}, {Who: gatehouse.Audience{People: []string{"ben"}}}}
	if got := whom(a); got != "the role approver, or the group finance, or ana" {
		t.Errorf("it waits for %s", got)
	}
}

// TestRunPageSaysWhatItLeavesOut: events and steps beyond the page's limit are counted, and nothing links to them.
func TestRunPageSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	d := &gatehouse.RunDetail{Run: &gatehouse.Run{}}
	for i := range maxRows + 2 {
		d.Signals = append(d.Signals, &gatehouse.Signal{Name: "paid"})
		d.Steps = append(d.Steps, &gatehouse.Step{ID: "s" + strconv.Itoa(i), Key: "k" + strconv.Itoa(i)})
	}
	d.Attempts = []*gatehouse.StepAttempt{{StepID: "s499"}, {StepID: "s500"}}
	var page strings.Builder
	v := &view{now: at(0)}
	if err := signalSection(v, &runPage{d: d}).Render(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	if err := attemptSection(v, d).Render(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"2 more events are not shown": true, "#s-s499": true, "k500": true, "#s-s500": false,
	} {
		if got := strings.Contains(page.String(), text); got != want {
			t.Errorf("the page has %q: %v", text, got)
		}
	}
	d.Workflow, d.Version = "w", 1
	c := &Console{cfg: Config{Runs: oneWorkflow{source: "name: w\nsteps:\n- {id: k499, uses: transform, with: 1}\n" +
		"- {id: k500, uses: transform, with: 1}\n"}}}
	whole, err := c.runPageOf(v, d)
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	var read func([]drawnNode)
	read = func(nodes []drawnNode) {
		for _, n := range nodes {
			if n.name == "a" {
				links = append(links, n.attr[0][1])
			}
			read(n.children)
		}
	}
	read(whole.graph)
	if !slices.Equal(links, []string{"#s-s499"}) {
		t.Errorf("the graph links to %q", links)
	}
}

// oneWorkflow has one workflow.
type oneWorkflow struct {
	RunKeeper
	source string
}

func (w oneWorkflow) FindWorkflow(context.Context, string, int) (*gatehouse.Workflow, error) {
	return &gatehouse.Workflow{Source: w.source}, nil
}
