package policy

// Mode decides about calls that would be asked about. A rule that denies holds in every mode.
type Mode string

const (
	// ModeDefault asks.
	ModeDefault Mode = "default"

	// ModeClient passes through to the client, which asks its own user. Tools tagged dangerous are
	// asked about all the same, because many clients let their users allow everything. So are calls
	// of the hub's own tools that go beyond their limits, of which the client knows nothing.
	ModeClient Mode = "client"

	// ModeReadOnly denies every tool that is not known to read only, rules that allow it or not.
	ModeReadOnly Mode = "read_only"

	// ModePlan denies as ModeReadOnly does, but tells the model to plan instead of giving up.
	ModePlan Mode = "plan"

	// ModeAcceptAll allows. Each decision says so. The hub warns of it at its start: see Mode.Warning.
	ModeAcceptAll Mode = "accept_all"
)

// Modes are all modes.
func Modes() []Mode { return []Mode{ModeDefault, ModeClient, ModeReadOnly, ModePlan, ModeAcceptAll} }

// Of is the mode that holds at a door: without a mode, clients on stdio are passed through to and all others are asked.
func (m Mode) Of(door string) Mode {
	switch {
	case m != "":
		return m
	case door == "stdio":
		return ModeClient
	}
	return ModeDefault
}

// Warning is the warning for people when the hub starts in this mode; "" where there is none.
func (m Mode) Warning() string {
	if m != ModeAcceptAll {
		return ""
	}
	return "policy.mode is accept_all: EVERY CALL THAT WOULD BE ASKED ABOUT RUNS WITHOUT A QUESTION, " +
		"writes and dangerous tools included; only rules that deny hold. Use mode default or client to be asked"
}

// forbidsWriting reports whether the mode denies everything that is not known to read only.
func (m Mode) forbidsWriting() bool { return m == ModeReadOnly || m == ModePlan }

// dangerous is the tag of tools that a mode does not pass through, and that a rule allows only by name.
const dangerous = "dangerous"
