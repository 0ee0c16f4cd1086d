package embed

// IsWhole reports whether every tool has its vector.
func (s *Store) IsWhole() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.tools {
		if t.vector == nil {
			return false
		}
	}
	return true
}
