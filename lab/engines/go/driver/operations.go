package driver

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	largeValue = 100_000
	scanStride = 128
	seekSteps  = 10
	// Entries in a queue before any is taken out.
	queued = 1000
	// Keys of a range that is deleted.
	rangeKeys = 100
	// Keys that are got at once.
	keysAtOnce = 64
	// The time until an entry that expires does.
	timeToLive = time.Second
)

// task is the state shared by all threads of a benchmark.
type task struct {
	benchmark benchmark
	settings  *Settings
	pool      []byte
	// Where the latest keys are read most.
	zipfian *zipfian
	// The greatest key there is.
	newest  *atomic.Uint64
	threads uint64
}

// operations are those of one thread.
type operations struct {
	task
	first, end uint64
	// Random keys are below it.
	below   uint64
	session Session
	meter   *meter
	random  random
	// What fillrandom drew, to be read again.
	filled    random
	pareto    pareto
	scrambled scrambledZipfian
	key       key
	// The end of a range that is deleted.
	rangeEnd key
	values   values
	value    []byte
	firstKey []byte
}

func newOperations(t task, thread uint64, session Session, m *meter) *operations {
	s, all := t.settings, t.benchmark.operations(t.settings)
	o := &operations{
		task:      t,
		first:     share(all, thread, t.threads),
		end:       share(all, thread+1, t.threads),
		below:     s.Num,
		session:   session,
		meter:     m,
		random:    newRandom(s.seed, t.benchmark.stream(), thread),
		filled:    newRandom(s.seed, fillRandom, 0),
		pareto:    newPareto(s.Num, 0.2),
		scrambled: newScrambledZipfian(s.Num),
		key:       newKey(s.keySize, t.benchmark.keys == missing),
		rangeEnd:  newKey(s.keySize, false),
		values:    newValues(t.pool, s.valueSize, s.valueSizeMax),
	}
	if t.benchmark.reads == 0 {
		o.pareto = newPareto(s.Num, 0.0001)
	}
	if t.benchmark.keys == hot {
		o.below = max(s.Num/100, 1)
	}
	if t.benchmark.hasLargeValues() {
		o.below = all
		o.values = newValues(t.pool, largeValue, 0)
	}
	return o
}

func (o *operations) run() error {
	switch o.benchmark.kind {
	case put:
		return o.each(func(i uint64) error { return o.put(o.nextKey(i)) })
	case putBatch:
		return o.batches()
	case remove:
		return o.each(func(i uint64) error { return o.remove(o.nextKey(i)) })
	case get, getWhilePutting:
		return o.each(func(i uint64) error { return o.get(o.nextKey(i)) })
	case scan:
		return o.scan(o.benchmark.keys == inOrder)
	case seek:
		return o.each(func(i uint64) error { return o.steps(o.nextKey(i), seekSteps, true) })
	case mixed:
		return o.each(o.getOrPut)
	case latest:
		return o.each(func(uint64) error { return o.getLatest() })
	case shortScans:
		return o.each(func(uint64) error { return o.shortScan() })
	case getAndPut:
		return o.each(o.getAndPut)
	case queue:
		return o.each(o.putLastTakeFirst)
	case removeRange:
		return o.each(func(i uint64) error { return o.removeRange(o.nextKey(i)) })
	case putExpiring:
		return o.each(func(i uint64) error { return o.putExpiring(o.nextKey(i)) })
	case multiGet:
		return o.multiGets()
	case bulkLoad:
		return o.load()
	}
	return fmt.Errorf("%s concerns the whole database", o.benchmark.name)
}

// putBesideReaders is the additional thread of readwhilewriting. It puts at the pace that is asked
// for, or without pause. What was due while a put lasted is put at once. It puts at least once,
// however short the reads.
func (o *operations) putBesideReaders() error {
	begin, rate := time.Now(), o.settings.writeRate
	for done := uint64(0); done == 0 || o.meter.goesOn(); done++ {
		if rate > 0 {
			due := time.Duration(float64(done) / float64(rate) * 1e9)
			time.Sleep(due - time.Since(begin))
			if done > 0 && !o.meter.goesOn() {
				break
			}
		}
		if err := o.put(o.nextKey(0)); err != nil {
			return err
		}
	}
	return nil
}

// each calls operation for all that this thread is to do, or until time is up.
func (o *operations) each(operation func(i uint64) error) error {
	if o.benchmark.isTimed() {
		for o.meter.goesOn() {
			if err := operation(0); err != nil {
				return err
			}
		}
		return nil
	}
	for i := o.first; i < o.end; i++ {
		if !o.meter.goesOn() {
			o.meter.truncated = true
			break
		}
		if err := operation(i); err != nil {
			return err
		}
	}
	return nil
}

func (o *operations) nextKey(i uint64) uint64 {
	switch o.benchmark.keys {
	case atRandom, missing, hot:
		return o.random.below(o.below)
	case asPut:
		return o.filled.at(o.random.below(o.below)) % o.below
	case byPareto:
		return o.pareto.next(&o.random)
	case byZipfian:
		return o.scrambled.next(&o.random)
	}
	return i
}

// happens is true in so many cases out of a hundred.
func (o *operations) happens(inHundred uint64) bool {
	return o.random.below(100) < inHundred
}

func (o *operations) put(number uint64) error {
	key, value := o.key.set(number), o.values.next(&o.random)
	err := o.session.Put(key, value)
	o.meter.end(1, len(key)+len(value))
	return err
}

func (o *operations) remove(number uint64) error {
	key := o.key.set(number)
	err := o.session.Delete(key)
	o.meter.end(1, len(key))
	return err
}

func (o *operations) removeRange(number uint64) error {
	end := o.rangeEnd.set(number + rangeKeys)
	if session, ok := o.session.(RangeDeleter); ok {
		err := session.DeleteRange(o.key.set(number), end)
		o.meter.end(1, 2*len(end))
		return err
	}
	for i := range uint64(rangeKeys) {
		if err := o.session.BatchDelete(o.key.set(number + i)); err != nil {
			return err
		}
	}
	err := o.session.Commit()
	o.meter.end(1, 2*len(end))
	return err
}

func (o *operations) putExpiring(number uint64) error {
	session, ok := o.session.(Expirer)
	if !ok {
		return fmt.Errorf("entries do not expire")
	}
	key, value := o.key.set(number), o.values.next(&o.random)
	err := session.PutExpiring(key, value, timeToLive)
	o.meter.end(1, len(key)+len(value))
	return err
}

// look returns the bytes read.
func (o *operations) look(key []byte) (int, error) {
	found, err := o.session.Get(key, &o.value)
	if err != nil || !found {
		return 0, err
	}
	o.meter.found++
	return len(key) + len(o.value), nil
}

func (o *operations) get(number uint64) error {
	size, err := o.look(o.key.set(number))
	o.meter.end(1, size)
	return err
}

func (o *operations) getOrPut(i uint64) error {
	switch o.benchmark.reads {
	case 0:
		return o.put(o.nextKey(i))
	case 100:
		return o.get(o.nextKey(i))
	}
	isGet := o.happens(o.benchmark.reads)
	number := o.nextKey(i)
	if isGet {
		return o.get(number)
	}
	return o.put(number)
}

func (o *operations) getAndPut(i uint64) error {
	number := o.nextKey(i)
	onlyGet := o.happens(o.benchmark.reads)
	key := o.key.set(number)
	size, err := o.look(key)
	if err != nil {
		return err
	}
	if !onlyGet {
		value := o.values.next(&o.random)
		if err := o.session.Put(key, value); err != nil {
			return err
		}
		size += len(key) + len(value)
	}
	o.meter.end(1, size)
	return nil
}

func (o *operations) putNewest() error {
	return o.put(o.newest.Add(1))
}

func (o *operations) getLatest() error {
	if !o.happens(o.benchmark.reads) {
		return o.putNewest()
	}
	return o.get(o.newest.Load() - o.zipfian.rank(&o.random))
}

func (o *operations) shortScan() error {
	if !o.happens(o.benchmark.reads) {
		return o.putNewest()
	}
	number := o.nextKey(0)
	return o.steps(number, 1+o.random.below(100), false)
}

// steps seeks a key and scans from there.
func (o *operations) steps(number, most uint64, countFound bool) error {
	target := o.key.set(number)
	cursor, err := o.session.NewCursor()
	if err != nil {
		return err
	}
	size := 0
	valid := cursor.Seek(target)
	if countFound && valid && bytes.Equal(cursor.Key(), target) {
		o.meter.found++
	}
	for step := uint64(0); valid; valid = cursor.Next() {
		size += len(cursor.Key()) + len(cursor.Value())
		if step++; step == most {
			break
		}
	}
	err = cursor.Close()
	o.meter.end(1, size)
	return err
}

func (o *operations) putLastTakeFirst(number uint64) error {
	key, value := o.key.set(number), o.values.next(&o.random)
	if err := o.session.Put(key, value); err != nil {
		return err
	}
	size := len(key) + len(value)
	if number-o.first >= queued {
		cursor, err := o.session.NewCursor()
		if err != nil {
			return err
		}
		valid := cursor.First()
		if valid {
			size += len(cursor.Key()) + len(cursor.Value())
			o.firstKey = append(o.firstKey[:0], cursor.Key()...)
		}
		if err := cursor.Close(); err != nil {
			return err
		}
		if valid {
			if err := o.session.Delete(o.firstKey); err != nil {
				return err
			}
			o.meter.found++
		}
	}
	o.meter.end(1, size)
	return nil
}

func (o *operations) batches() error {
	i := o.first
	for i < o.end && o.meter.goesOn() {
		count, size := min(o.settings.Batch, o.end-i), 0
		for range count {
			key, value := o.key.set(o.nextKey(i)), o.values.next(&o.random)
			if err := o.session.BatchPut(key, value); err != nil {
				return err
			}
			size += len(key) + len(value)
			i++
		}
		if err := o.session.Commit(); err != nil {
			return err
		}
		o.meter.end(count, size)
	}
	o.meter.truncated = i < o.end
	return nil
}

// multiGets gets keys one after the other, and counts groups of them as one call.
func (o *operations) multiGets() error {
	i := o.first
	for i < o.end && o.meter.goesOn() {
		count, size := min(keysAtOnce, o.end-i), 0
		for range count {
			bytes, err := o.look(o.key.set(o.nextKey(i)))
			if err != nil {
				return err
			}
			size += bytes
			i++
		}
		o.meter.end(count, size)
	}
	o.meter.truncated = i < o.end
	return nil
}

func (o *operations) scan(forwards bool) error {
	cursor, err := o.session.NewCursor()
	if err != nil {
		return err
	}
	begin, step := cursor.First, cursor.Next
	if !forwards {
		begin, step = cursor.Last, cursor.Prev
	}
	left := o.end - o.first
	valid := left > 0 && begin()
	for valid && left > 0 && o.meter.goesOn() {
		steps, size := uint64(0), 0
		for valid && left > 0 && steps < scanStride {
			size += len(cursor.Key()) + len(cursor.Value())
			steps++
			left--
			if left > 0 {
				valid = step()
			}
		}
		o.meter.endSteps(steps, size)
	}
	o.meter.truncated = valid && left > 0
	return cursor.Close()
}

func (o *operations) load() error {
	loader, err := o.session.NewLoader()
	if err != nil {
		return err
	}
	err = o.each(func(i uint64) error {
		key, value := o.key.set(i), o.values.next(&o.random)
		err := loader.Put(key, value)
		o.meter.end(1, len(key)+len(value))
		return err
	})
	if err != nil {
		return err
	}
	err = loader.Finish()
	o.meter.end(0, 0)
	return err
}
