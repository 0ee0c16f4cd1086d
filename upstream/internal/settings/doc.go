// Package settings holds what the config says of one server: how it is reached, and the timeouts
// and limits that hold for it. It reads no file and opens no connection; the packages above it take
// from a Server what they need.
package settings
