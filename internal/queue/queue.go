// Package queue holds what waits for a reader that may be slow, within bounds.
package queue

import "slices"

// Item is an element of a Queue.
type Item interface {
	// Size returns how many bytes the element holds.
	Size() int

	// Key returns what the element is about, or "". While an element with a key waits, another one
	// with that key says nothing new. Elements with a key are never dropped.
	Key() string
}

// Bounds limit the elements of a Queue that have no key.
type Bounds struct {
	Items int
	Bytes int // 0: any number
}

// Queue holds elements in the order of their arrival. The zero value is empty. It is not safe for
// concurrent use: its owner has a mutex.
type Queue[T Item] struct {
	DropFirst func(T) bool // what is dropped before older elements; may be nil

	waiting []T
	keys    map[string]bool
	loose   int // elements without a key
	size    int // bytes of these
}

// Put adds v, and drops the oldest elements without a key that exceed the bounds, maybe v itself. It returns how many.
func (q *Queue[T]) Put(v T, most Bounds) (dropped int) {
	if q.keys[v.Key()] {
		return 0
	}
	q.add(v)
	for q.loose > most.Items || most.Bytes > 0 && q.size > most.Bytes {
		i := -1
		if q.DropFirst != nil {
			i = slices.IndexFunc(q.waiting, q.DropFirst)
		}
		if i < 0 {
			i = slices.IndexFunc(q.waiting, func(old T) bool { return old.Key() == "" })
		}
		q.forget(q.waiting[i])
		q.waiting = slices.Delete(q.waiting, i, i+1)
		dropped++
	}
	return dropped
}

// Next removes the first element and returns it.
func (q *Queue[T]) Next() (v T, ok bool) {
	if len(q.waiting) == 0 {
		return v, false
	}
	v, q.waiting = q.waiting[0], q.waiting[1:]
	q.forget(v)
	if len(q.waiting) == 0 {
		q.waiting, q.keys = nil, nil // gives their memory back
	}
	return v, true
}

// All removes all elements and returns them.
func (q *Queue[T]) All() []T {
	all := q.waiting
	q.waiting, q.keys, q.loose, q.size = nil, nil, 0, 0
	return all
}

// Len returns how many elements wait.
func (q *Queue[T]) Len() int { return len(q.waiting) }

func (q *Queue[T]) add(v T) {
	if key := v.Key(); key == "" {
		q.loose++
		q.size += v.Size()
	} else {
		if q.keys == nil {
			q.keys = make(map[string]bool)
		}
		q.keys[key] = true
	}
	q.waiting = append(q.waiting, v)
}

func (q *Queue[T]) forget(v T) {
	if key := v.Key(); key != "" {
		delete(q.keys, key)
		return
	}
	q.loose--
	q.size -= v.Size()
}
