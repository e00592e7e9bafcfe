// Package static serves the files of mounted directories, and the samples index
// (spec 01 5.9, 5.10).
package static
