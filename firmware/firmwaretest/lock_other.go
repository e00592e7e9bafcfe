//go:build !unix

package firmwaretest

import "os"

// exclusive does nothing where the device programs are not built.
func exclusive(*os.File) error { return nil }
