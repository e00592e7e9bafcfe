package scenarios

import (
	"fmt"
	"path/filepath"
)

type programAction struct {
	ID      string `step:"program,required"`
	Command words  `step:"command,required"`
	Dir     string `step:"dir"`
	Files   words  `step:"files"`
	Needs   string `step:"needs"`
	Scratch bool   `step:"scratch"`

	dir, path string // set by locate
}

func (a *programAction) check(c *checker) {
	if c.names[nameProgram][a.ID] {
		c.fail("program", "program %q runs already: use another name", a.ID)
	}
	if a.Scratch && (a.Dir != "" || a.Files != nil) {
		c.fail("scratch", `"scratch" takes neither "dir" nor "files": the folder is empty but for what the script writes`)
	}
	c.declare(nameProgram, a.ID)
	c.programs = append(c.programs, placedProgram{c.here.line, a})
}

// placedProgram is a program that some step starts.
type placedProgram struct {
	line   int
	action *programAction
}

// locate finds everything the program needs, before anything is started.
func (a *programAction) locate() error {
	dir, err := upwards(filepath.FromSlash(a.Dir))
	if err != nil {
		return err
	}
	for _, file := range a.Files {
		if _, err := upwards(filepath.Join(dir, filepath.FromSlash(file))); err != nil {
			return err
		}
	}
	a.dir = dir
	a.path, err = lookUp(dir, a.Command[0])
	return err
}

// missingPrograms tells which programs of a script cannot be run here.
func missingPrograms(s *script) []Problem {
	var problems []Problem
	for _, p := range s.programs {
		err := p.action.locate()
		if err == nil {
			continue
		}
		text := fmt.Sprintf("program %q cannot be run here: %v", p.action.ID, err)
		if p.action.Needs != "" {
			text += "; it needs " + p.action.Needs
		}
		problems = append(problems, Problem{s.file, p.line, text})
	}
	return problems
}

func (a *programAction) run(r *runner) error {
	dir := a.dir
	if a.Scratch {
		dir = r.dir
	}
	p, err := startProgram(a.ID, dir, a.path, a.Command[1:], r.out.event, r.giveUp)
	if err != nil {
		return err
	}
	r.programs[a.ID] = p
	return nil
}

type expectLine struct {
	ID       string `step:"expect_line,required"`
	Contains words  `step:"contains,required"`
	Within   span   `step:"within"`
}

func (a *expectLine) check(c *checker) { c.use(nameProgram, "expect_line", a.ID) }

func (a *expectLine) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	if err := r.programs[a.ID].expect(ctx, a.Contains); err != nil {
		return missed(ctx, fmt.Sprintf("%s: a line with %q", a.ID, a.Contains))
	}
	return nil
}
