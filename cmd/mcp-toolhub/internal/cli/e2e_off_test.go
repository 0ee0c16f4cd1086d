//go:build !e2e

package cli

const e2e = false

func e2eMain() bool { return false }

func e2ePrograms() map[string]func() { return nil }

func e2eHub() {}
