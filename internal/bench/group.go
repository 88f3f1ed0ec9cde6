package bench

import "iter"

// groupBatch is the maximum number of callers that share a transaction, as in the store.
const groupBatch = 64

// group is the simplest group commit: each of its goroutines writes the waiting items in one transaction. All
// callers of a batch get the error of its write; no write is expected to fail.
type group[T any] struct {
	// write writes all items of the sequence in one transaction. Items that arrive meanwhile join the sequence.
	write func(iter.Seq[T]) error
	queue chan groupJob[T]
	done  chan struct{}
}

type groupJob[T any] struct {
	item T
	done chan error
}

func newGroup[T any](writers int, write func(iter.Seq[T]) error) *group[T] {
	g := &group[T]{write: write, queue: make(chan groupJob[T], 4*groupBatch), done: make(chan struct{}, writers)}
	for range writers {
		go g.loop()
	}
	return g
}

// do writes an item, and returns when the item is durable.
func (g *group[T]) do(item T) error {
	j := groupJob[T]{item: item, done: make(chan error, 1)}
	g.queue <- j
	return <-j.done
}

// close ends the group. No call of do may follow.
func (g *group[T]) close() {
	close(g.queue)
	for range cap(g.done) {
		<-g.done
	}
}

func (g *group[T]) loop() {
	defer func() { g.done <- struct{}{} }()
	for first := range g.queue {
		batch := []groupJob[T]{first}
		err := g.write(func(yield func(T) bool) {
			for n := 0; n < len(batch) && yield(batch[n].item); n++ {
				if len(batch) == groupBatch {
					continue
				}
				select {
				case j, open := <-g.queue:
					if open {
						batch = append(batch, j)
					}
				default:
				}
			}
		})
		for _, j := range batch {
			j.done <- err
		}
	}
}
