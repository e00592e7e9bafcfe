package stdio

// Lookup finds the file that a command leads to: a path as it is, relative to dir, a
// bare name in the PATH of env. It is how a start finds it.
func Lookup(command, dir string, env []string) (string, error) { return lookup(command, dir, env) }
