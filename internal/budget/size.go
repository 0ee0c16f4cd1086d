package budget

import "github.com/KimMachineGun/automemlimit/memlimit"

// The default budget is a quarter of the memory that the process may use, between these bounds.
const (
	least = 64 << 20
	most  = 2 << 30
)

// Default is the size of the budget where nothing else is configured: a quarter of the memory of the machine, or of the
// cgroup where that is less, and at most 2 GiB.
func Default() int64 {
	size := uint64(4 * most)
	for _, limit := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if n, err := limit(); err == nil && n > 0 {
			size = min(size, n)
		}
	}
	return max(int64(size/4), least)
}
