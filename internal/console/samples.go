package console

// Samples are commands that put a harmless example into an empty list. On a development server they
// use the credentials of its agent or its second person; elsewhere they use those of the command line.
const (
	agentEnv    = `eval "$(gatehouse dev env --as agent)"; `
	reviewerEnv = `eval "$(gatehouse dev env --as reviewer)"; `

	sampleChange = `gatehouse propose --type price_change --connector shop --operation update ` +
		`--target item/SKU-0001 --was price=10.00 --set price=12.50 --rationale "supplier raised cost"`
	// sampleDemo plays the demonstration, on a server and in a folder of its own. One of its actions
	// becomes a dead letter, which is then replayed.
	sampleDemo = `gatehouse demo`
)

// sampleProposal is the command of the empty inbox, with its text.
func (v *view) sampleProposal() (text, command string) {
	if v.c.cfg.Development {
		return "What agents propose appears here. On the machine of this development server, the command proposes a " +
			"change as its agent:", agentEnv + sampleChange
	}
	return "What agents propose appears here. This command proposes a harmless change, with the key of an agent:",
		sampleChange
}

// sampleDead is the text of the empty list of dead letters, with a command on a development server
// only: elsewhere, a failed call is not a harmless example.
func (v *view) sampleDead() (text, command string) {
	text = "Everything that was sent has a known outcome, and no failure is open."
	if v.c.cfg.Development {
		return text + " The demonstration makes a dead letter, on a server of its own:", sampleDemo
	}
	return text, ""
}

// sampleRun is the command that makes a first workflow and a run of it that asks a person one
// question. The workflow's author cannot answer the question: on a development server the command
// applies the workflow as the server's second person, so that the first one, who is signed in here,
// can answer.
func (v *view) sampleRun() (text, command string) {
	const (
		intro = "A workflow says which steps are done in which order, and where people have to agree. "
		file  = `printf 'name: hello\nsteps:\n  - {id: ask, uses: approval, with: {rationale: "shall we?"}}\n' ` +
			`> hello.yaml && `
		apply, start = `gatehouse workflow apply hello.yaml && `, `gatehouse run start hello`
	)
	if v.c.cfg.Development {
		return intro + "On the machine of a development server, this command applies a first workflow as the " +
				"server's second person, and starts a run of it as its agent, which then asks you:",
			file + reviewerEnv + apply + agentEnv + start
	}
	return intro + "This command applies a first workflow, and starts a run of it that asks one question:",
		file + apply + start
}

// live is the URL from which an open page loads its content again. Requests with the parameter live do
// not extend the session.
func (v *view) live() string {
	u := *v.r.URL
	q := u.Query()
	q.Set("live", "1")
	u.RawQuery = q.Encode()
	return localPath(u.RequestURI())
}
