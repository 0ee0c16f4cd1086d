package facts

// Declaration is the tool's tool_declaration.
func (f *Facts) Declaration() any { return nil }
