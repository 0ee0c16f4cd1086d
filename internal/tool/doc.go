// Package tool is the vocabulary of the hub: the Agent Tool 0.2.0 objects, their identifiers, error
// classes and events, and the few types that packages hand to each other about tools, servers and
// calls. docs/glossary.md explains the words.
//
// Every other package may import it. So it depends on the standard library alone and starts
// nothing: no goroutine, no file, no connection.
package tool
