// Package version says which version of Copse a program is.
package version

// version is set by the linker.
var version = "v0.1.0-dev"

// APIServer is the version that the API server's /version tells, major and minor.
const APIServer = "0.1"

// String is the version of the program.
func String() string {
	return version
}
