package cli

import (
	"github.com/alecthomas/kong"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// globals holds the flags and the state that all commands share. A Run of this package can take it
// as a parameter; the commands of package serve get only its IO.
type globals struct {
	URL       string `help:"The server's URL; by default that of the context, else http://127.0.0.1:8080." env:"GATEHOUSE_URL" placeholder:"URL" group:"global"`
	Context   string `help:"The named server to use; see gatehouse context." env:"GATEHOUSE_CONTEXT" placeholder:"NAME" group:"global"`
	Key       string `help:"Your API key. Better in the environment, where other users of the machine do not see it." env:"GATEHOUSE_KEY" placeholder:"KEY" group:"global"`
	EditToken string `help:"Your edit token, which deciding needs. Better in the environment." env:"GATEHOUSE_EDIT_TOKEN" placeholder:"TOKEN" group:"global"`
	AsJSON    bool   `name:"json" help:"Print the API's JSON, one document." group:"global"`

	Release kong.VersionFlag `name:"version" hidden:"" help:"Print the version."`

	term.IO `kong:"-"`
	// resolved is true after the context was read.
	resolved bool
	// savedURL is true if URL is that of the context.
	savedURL bool
	// named is the id of the action that is decided or edited, for hints; "" for none.
	named string
	// missing is the hint for a not_found error of the server; "" for the general hint.
	missing string
}
