package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd prints a completion script.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*completionCmd) Help() string {
	return `
The script contains the commands and flags of this version.

Examples:

    gatehouse completion bash > /etc/bash_completion.d/gatehouse
    gatehouse completion zsh > "${fpath[1]}/_gatehouse"
    gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish
`
}

func (c *completionCmd) Run(g *globals) error {
	all, err := newParser(&cli{Globals: *g}, nil)
	if err != nil {
		return err
	}
	nodes := completions(all.Model.Node)
	switch c.Shell {
	case "bash":
		return bashCompletion(g.Stdout, nodes)
	case "zsh":
		return zshCompletion(g.Stdout, nodes)
	}
	return fishCompletion(g.Stdout, nodes)
}

// completion lists the words that can follow a command.
type completion struct {
	path  string // such as "policy lint"; "" for the program itself
	words []completionWord
	// files is true when the command takes a file as an argument.
	files bool
}

// completionWord is a subcommand, a flag, or a value of an argument.
type completionWord struct {
	word, help string
	// takes is true for a flag that takes a value; values are its possible values, and file is
	// true if the value is a file name.
	takes  bool
	values []string
	file   bool
}

// completions lists the words that can follow each command, including the global flags.
func completions(root *kong.Node) []completion {
	var out []completion
	var walk func(n *kong.Node, path string, inherited []completionWord)
	walk = func(n *kong.Node, path string, inherited []completionWord) {
		c := completion{path: path}
		for _, child := range n.Children {
			if !child.Hidden {
				c.words = append(c.words, completionWord{word: child.Name, help: child.Help})
			}
		}
		for _, p := range n.Positional {
			for _, v := range p.EnumSlice() {
				if v != "" {
					c.words = append(c.words, completionWord{word: v})
				}
			}
			c.files = c.files || slices.Contains([]string{"file", "document", "log"}, p.Name)
		}
		flags := slices.Clone(inherited)
		for _, f := range n.Flags {
			if !f.Hidden {
				flags = append(flags, flagWord(f))
			}
		}
		c.words = append(c.words, flags...)
		if n.DefaultCmd != nil {
			for _, f := range n.DefaultCmd.Flags {
				if !f.Hidden {
					c.words = append(c.words, flagWord(f))
				}
			}
		}
		out = append(out, c)
		for _, child := range n.Children {
			if !child.Hidden {
				walk(child, strings.TrimSpace(path+" "+child.Name), flags)
			}
		}
	}
	walk(root, "", nil)
	return out
}

func flagWord(f *kong.Flag) completionWord {
	w := completionWord{word: "--" + f.Name, help: f.Help, takes: !f.IsBool(), file: f.PlaceHolder == "FILE"}
	for _, v := range f.EnumSlice() {
		if v != "" && v != "0" {
			w.values = append(w.values, v)
		}
	}
	return w
}

// isFlag distinguishes flags from subcommands and values.
func (w completionWord) isFlag() bool { return strings.HasPrefix(w.word, "-") }

// plain returns the first sentence of a help text, without characters that end a string in single quotes or that
// zsh's _describe interprets.
func plain(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	return strings.NewReplacer("'", "", "[", "(", "]", ")", "\\", "", "\n", " ", ":",
		" -").Replace(strings.TrimSuffix(s, "."))
}

// bashCompletion writes a script that requires no package besides bash.
func bashCompletion(w io.Writer, nodes []completion) error {
	var b strings.Builder
	b.WriteString("# bash completion for gatehouse\n_gatehouse() {\n")
	b.WriteString("    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"\" path=\"\" word i words=\"\" files=\"\"\n")
	b.WriteString("    (( COMP_CWORD > 0 )) && prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n")
	b.WriteString("    for (( i = 1; i < COMP_CWORD; i++ )); do\n        word=\"${COMP_WORDS[i]}\"\n" +
		"        case \"${path:+$path }$word\" in\n")
	fmt.Fprintf(&b, "            %s) path=\"${path:+$path }$word\" ;;\n", strings.Join(quotedPaths(nodes), "|"))
	b.WriteString("        esac\n    done\n    case \"$path $prev\" in\n")
	valueCases(&b, nodes, "'%s %s')", `COMPREPLY=($(compgen -W '%s' -- "$cur"));`, `COMPREPLY=($(compgen -f -- "$cur"));`)
	b.WriteString("    esac\n    case \"$path\" in\n")
	for _, n := range nodes {
		words := make([]string, len(n.words))
		for i, x := range n.words {
			words[i] = x.word
		}
		files := ""
		if n.files {
			files = " files=1"
		}
		fmt.Fprintf(&b, "        '%s') words='%s'%s ;;\n", n.path, strings.Join(words, " "), files)
	}
	b.WriteString("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n")
	b.WriteString("    [[ -n $files && $cur != -* ]] && COMPREPLY+=($(compgen -f -- \"$cur\"))\n}\n")
	b.WriteString("complete -o filenames -F _gatehouse gatehouse\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func quotedPaths(nodes []completion) []string {
	var out []string
	for _, n := range nodes {
		if n.path != "" {
			out = append(out, "'"+n.path+"'")
		}
	}
	return out
}

// valueCases writes a case for each flag that takes a value: pattern matches it, values offers its
// values, and files offers files.
func valueCases(b *strings.Builder, nodes []completion, pattern, values, files string) {
	for _, n := range nodes {
		for _, f := range n.words {
			if !f.takes {
				continue
			}
			fmt.Fprintf(b, "        "+pattern, n.path, f.word)
			switch {
			case len(f.values) > 0:
				fmt.Fprintf(b, " "+values, strings.Join(f.values, " "))
			case f.file:
				b.WriteString(" " + files)
			}
			b.WriteString(" return ;;\n")
		}
	}
}

// zshCompletion writes a script that also describes each word.
func zshCompletion(w io.Writer, nodes []completion) error {
	var b strings.Builder
	b.WriteString("#compdef gatehouse\n_gatehouse() {\n    local at=\"\" word prev=\"${words[CURRENT-1]}\"\n" +
		"    local -a found\n    integer i\n")
	b.WriteString("    for (( i = 2; i < CURRENT; i++ )); do\n        word=\"${words[i]}\"\n" +
		"        case \"${at:+$at }$word\" in\n")
	fmt.Fprintf(&b, "            (%s) at=\"${at:+$at }$word\" ;;\n", strings.Join(quotedPaths(nodes), "|"))
	b.WriteString("        esac\n    done\n    case \"$at $prev\" in\n")
	valueCases(&b, nodes, "('%s %s')", "compadd -- %s;", "_files;")
	b.WriteString("    esac\n    case \"$at\" in\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "        ('%s') found=(", n.path)
		for _, x := range n.words {
			fmt.Fprintf(&b, " '%s:%s'", x.word, plain(x.help))
		}
		b.WriteString(" )")
		if n.files {
			b.WriteString("; [[ $PREFIX != -* ]] && _files")
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("    esac\n    _describe gatehouse found\n}\n")
	// Loaded by compinit, the file is the body of the function; sourced, it defines the function.
	b.WriteString(
		"if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n    _gatehouse \"$@\"\nelse\n    compdef _gatehouse " +
			"gatehouse\nfi\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// fishCompletion writes a script with a line for each word.
func fishCompletion(w io.Writer, nodes []completion) error {
	var b strings.Builder
	b.WriteString(
		"# fish completion for gatehouse\nfunction __gatehouse_path\n    set -l path\n    for word in (commandline " +
			"-opc)[2..-1]\n        switch (string join ' ' -- $path $word)\n")
	fmt.Fprintf(&b, "            case %s\n                set -a path $word\n", strings.Join(quotedPaths(nodes), " "))
	b.WriteString("        end\n    end\n    string join ' ' -- $path\nend\n")
	b.WriteString("function __gatehouse_at\n    set -l at (__gatehouse_path)\n    test \"$at\" = \"$argv\"\nend\n")
	b.WriteString("complete -c gatehouse -f\n")
	for _, n := range nodes {
		if n.files {
			fmt.Fprintf(&b, "complete -c gatehouse -n '__gatehouse_at %s' -F\n", n.path)
		}
		for _, x := range n.words {
			fmt.Fprintf(&b, "complete -c gatehouse -n '__gatehouse_at %s'", n.path)
			switch {
			case !x.isFlag():
				fmt.Fprintf(&b, " -a '%s'", x.word)
			case len(x.values) > 0:
				fmt.Fprintf(&b, " -l %s -x -a '%s'", strings.TrimPrefix(x.word, "--"), strings.Join(x.values, " "))
			case x.file:
				fmt.Fprintf(&b, " -l %s -r -F", strings.TrimPrefix(x.word, "--"))
			case x.takes:
				fmt.Fprintf(&b, " -l %s -x", strings.TrimPrefix(x.word, "--"))
			default:
				fmt.Fprintf(&b, " -l %s", strings.TrimPrefix(x.word, "--"))
			}
			if x.help != "" {
				fmt.Fprintf(&b, " -d '%s'", plain(x.help))
			}
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
