package budget

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

// take returns the room of a message of size bytes that has come as a whole.
func take(t *testing.T, b *Budget, size int64, want error) *Room {
	t.Helper()
	r := b.Share().Room(nil)
	if err := r.Take(size); !errors.Is(err, want) {
		t.Fatalf("room for %d bytes: %v, want %v", size, err, want)
	}
	r.Whole(size)
	return r
}

// all takes all that there is, and so holds that nothing else is held.
func (b *Budget) all(t *testing.T) {
	t.Helper()
	if !b.room.TryAcquire(b.size) {
		t.Error("something is held")
		return
	}
	b.room.Release(b.size)
}

func TestSmallMessagesTakeNothing(t *testing.T) {
	t.Parallel()
	b := New(96 * mib)
	defer b.Close()
	for range 1000 {
		take(t, b, Small, nil)
	}
	b.all(t)
	var none *Share
	r := none.Room(nil)
	if r.Grow(1<<40) != nil || r.Take(1<<40) != nil || r.Err(nil) != nil {
		t.Error("a budget without bounds refuses something")
	}
	r.Whole(1)
	r.Free()
}

func TestMessagesWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(96 * mib)
		defer b.Close()
		large := take(t, b, 72*mib, nil)
		var others []*Room
		for range 3 {
			others = append(others, take(t, b, 8*mib, nil))
		}
		began := time.Now()
		take(t, b, 2*mib, ErrBusy)
		take(t, b, 9*mib, ErrBusy)
		if waited := time.Since(began); waited < 2*Patience || waited > 2*(Patience+Stall) {
			t.Errorf("they gave up after %s", waited)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() { take(t, b, 9*mib, nil).Free() })
		time.Sleep(Patience - time.Second) // virtual time
		large.Free()
		large.Free()
		waiting.Wait()
		for _, r := range others {
			r.Free()
		}
		b.all(t)
		take(t, b, 73*mib, ErrTooLarge)
		if largest := b.Share().Largest(); largest != 72*mib {
			t.Errorf("%d bytes are the largest message", largest)
		}
	})
}

// TestGrowingMessagesEndOneAfterTheOther has more messages grow at the same time than fit. The last one waits for minutes, and is
// not given up: room comes free all the time.
func TestGrowingMessagesEndOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(96 * mib)
		defer b.Close()
		var growing sync.WaitGroup
		for range 20 {
			growing.Go(func() {
				r := b.Share().Room(nil)
				for size := int64(mib); size <= 20*mib; size += mib {
					if err := r.Grow(size); err != nil {
						t.Error(err)
					}
				}
				r.Whole(20 * mib)
				time.Sleep(10 * time.Second) // virtual time
				r.Free()
			})
		}
		growing.Wait()
		b.all(t)
	})
}

// TestMessagesThatStopAreGivenUp has many messages of one server stop while they come. Those of another server wait for one of them at
// a time.
func TestMessagesThatStopAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(96 * mib)
		defer b.Close()
		stops := b.Share()
		var coming sync.WaitGroup
		for range 8 {
			coming.Go(func() {
				source, _ := io.Pipe()
				defer time.AfterFunc(time.Hour, func() { _ = source.Close() }).Stop() // the last one: nobody waits for it
				r := stops.Room(source)
				defer r.Free()
				err := r.Grow(9 * mib)
				if err == nil {
					_, err = source.Read(make([]byte, 1)) // blocks until it is closed
				}
				if err = r.Err(err); !errors.Is(err, ErrLate) && !errors.Is(err, ErrBusy) && !errors.Is(err, io.ErrClosedPipe) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for range 4 {
			began := time.Now()
			take(t, b, 30*mib, nil).Free()
			if waited := time.Since(began); waited > 2*Stall {
				t.Errorf("another message has waited %s", waited)
			}
		}
		coming.Wait()
		b.all(t)
	})
}

// TestAMessageThatComesSlowlyIsGivenUp: it brings something all the time, and others wait.
func TestAMessageThatComesSlowlyIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(96 * mib)
		defer b.Close()
		source, drip := io.Pipe()
		slow := b.Share().Room(source)
		if err := slow.Grow(9 * mib); err != nil {
			t.Fatal(err)
		}
		var coming sync.WaitGroup
		coming.Go(func() {
			for {
				if _, err := drip.Write([]byte("x")); err != nil {
					return
				}
				slow.Came()
				time.Sleep(time.Second) // virtual time
			}
		})
		coming.Go(func() {
			_, err := io.Copy(io.Discard, source)
			if err = slow.Err(err); !errors.Is(err, ErrLate) {
				t.Error(err)
			}
			slow.Free()
		})
		began := time.Now()
		take(t, b, 30*mib, nil).Free()
		if waited := time.Since(began); waited != Late {
			t.Errorf("another message has waited %s", waited)
		}
		coming.Wait()
		b.all(t)
	})
}

func TestRoomThatNobodyFreesIsCollected(t *testing.T) {
	t.Parallel()
	b := New(96 * mib)
	defer b.Close()
	take(t, b, 72*mib, nil)
	for !b.room.TryAcquire(96 * mib) {
		runtime.GC()
	}
}

func TestWhatWaitsEndsWithTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(96 * mib)
		held := take(t, b, 72*mib, nil)
		var waiting sync.WaitGroup
		waiting.Go(func() { take(t, b, 25*mib, ErrBusy) })
		synctest.Wait()
		b.Resize(192 * mib)
		take(t, b, 144*mib, nil).Free()
		b.Close()
		waiting.Wait()
		held.Free()
		take(t, b, 9*mib, ErrBusy)
	})
}

func TestTheDefaultIsWithinItsBounds(t *testing.T) {
	t.Parallel()
	if got := Default(); got < 16*mib || got > 96*mib {
		t.Errorf("the default is %d bytes", got)
	}
}
