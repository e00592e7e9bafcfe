package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// Each script asks the program itself what may come next. A flag that is being
// typed is asked about as "-": the library takes "--" for the end of the flags.
const (
	bashCompletion = `# bash completion of broker; load with: source <(broker completion bash)
_broker_complete() {
	local current=${COMP_WORDS[COMP_CWORD]}
	local -a line=("${COMP_WORDS[@]:0:COMP_CWORD}")
	[[ $current == -* ]] && line+=(-)
	local IFS=$'\n'
	COMPREPLY=($(compgen -W "$("${line[@]}" --generate-bash-completion 2>/dev/null)" -- "$current"))
}
complete -o bashdefault -o default -F _broker_complete broker
`
	zshCompletion = `#compdef broker
# zsh completion of broker; load with: source <(broker completion zsh)
_broker() {
	local current=${words[CURRENT]}
	local -a line=(${words[1,CURRENT-1]}) next
	[[ $current == -* ]] && line+=(-)
	next=(${(f)"$(${line} --generate-bash-completion 2>/dev/null)"})
	if (( ${#next} )); then compadd -- $next; else _files; fi
}
compdef _broker broker
`
	powershellCompletion = `# PowerShell completion of broker; load with: broker completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName broker -ScriptBlock {
	param($word, $tree, $cursor)
	$line = @($tree.CommandElements | ForEach-Object { $_.Extent.Text })
	$rest = @($line | Select-Object -Skip 1)
	if ($word -ne '') { $rest = @($rest | Select-Object -SkipLast 1) }
	if ($word.StartsWith('-')) { $rest += '-' }
	& $line[0] @rest --generate-bash-completion 2>$null |
		Where-Object { $_ -like "$word*" } |
		ForEach-Object { [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_) }
}
`
)

// asksFlags tells whether the word before the question begins with a dash.
func asksFlags(args []string) bool {
	return len(args) > 2 && strings.HasPrefix(args[len(args)-2], "-")
}

// completer answers the scripts: the flags of a command, or its subcommands.
func completer(args []string) cli.BashCompleteFunc {
	flags := asksFlags(args)
	return func(c *cli.Context) {
		if !flags {
			for _, sub := range c.Command.Subcommands {
				fmt.Fprintln(c.App.Writer, sub.Name)
			}
			return
		}
		for _, f := range c.Command.Flags {
			fmt.Fprintln(c.App.Writer, "--"+f.Names()[0])
		}
	}
}

func (p *program) completionCommand() *cli.Command {
	script := func(name string, text func(*cli.App) (string, error)) *cli.Command {
		return &cli.Command{
			Name:  name,
			Usage: "print the script for " + name,
			Action: func(c *cli.Context) error {
				if c.Args().Present() {
					return refuse(c, fmt.Sprintf("unexpected argument %q", c.Args().First()))
				}
				out, err := text(c.App)
				if err != nil {
					return fmt.Errorf("write the completion script for %s: %w", name, err)
				}
				fmt.Fprint(p.stdout, out)
				return nil
			},
		}
	}
	fixed := func(text string) func(*cli.App) (string, error) {
		return func(*cli.App) (string, error) { return text, nil }
	}
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish|powershell",
		Subcommands: []*cli.Command{
			script("bash", fixed(bashCompletion)),
			script("zsh", fixed(zshCompletion)),
			script("fish", (*cli.App).ToFishCompletion),
			script("powershell", fixed(powershellCompletion)),
		},
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return refuse(c, fmt.Sprintf("unknown shell %q; known are bash, zsh, fish and powershell", name))
			}
			return refuse(c, "name a shell: bash, zsh, fish or powershell")
		},
	}
}
