package driver

import "fmt"

const (
	testPasses     = 2
	testOperations = 10_000
	testKeys       = 5000
	testSteps      = 5
)

// digest is FNV-1a over what reads return.
type digest uint64

func newDigest() digest {
	return 0xcbf29ce484222325
}

func (d *digest) byte(b byte) {
	*d = (*d ^ digest(b)) * 0x100000001b3
}

func (d *digest) bytes(bytes []byte) {
	for shift := 0; shift < 32; shift += 8 {
		d.byte(byte(len(bytes) >> shift))
	}
	for _, b := range bytes {
		d.byte(b)
	}
}

func (d *digest) missing() {
	d.byte(0)
}

func (d *digest) value(value []byte) {
	d.byte(1)
	d.bytes(value)
}

func (d *digest) entry(key, value []byte) {
	d.bytes(key)
	d.bytes(value)
}

func (d *digest) endOfScan() {
	d.byte(2)
}

// selfTester does random operations whose results are folded into one number, which is the same for
// every engine that is right.
type selfTester struct {
	pool   []byte
	random random
	key    key
	value  []byte
	digest digest
}

// runSelfTest works on an empty database that is open for use, and is so again when it returns.
func runSelfTest(settings *Settings, engine Engine, use Use) (string, error) {
	test, err := findBenchmark("selftest")
	if err != nil {
		return "", err
	}
	t := &selfTester{
		pool:   newPool(settings.seed, 1),
		random: newRandom(settings.seed, test.number, 0),
		key:    newKey(settings.keySize, false),
		digest: newDigest(),
	}
	for pass := range testPasses {
		if pass > 0 {
			if err := engine.Close(); err != nil {
				return "", err
			}
			if err := engine.Open(use); err != nil {
				return "", err
			}
		}
		if err := t.pass(engine); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%016x", uint64(t.digest)), nil
}

func (t *selfTester) pass(engine Engine) error {
	session, err := engine.NewSession()
	if err != nil {
		return err
	}
	for range testOperations {
		if err := t.operation(session); err != nil {
			session.Close()
			return err
		}
	}
	for _, forwards := range []bool{true, false} {
		if err := t.whole(session, forwards); err != nil {
			session.Close()
			return err
		}
	}
	return session.Close()
}

func (t *selfTester) operation(session Session) error {
	what, number := t.random.below(10), t.random.below(testKeys)
	switch {
	case what < 5:
		return session.Put(t.key.set(number), t.nextValue())
	case what < 7:
		return session.Delete(t.key.set(number))
	case what == 7:
		return t.batch(session)
	case what == 8:
		found, err := session.Get(t.key.set(number), &t.value)
		if found {
			t.digest.value(t.value)
		} else {
			t.digest.missing()
		}
		return err
	}
	return t.seek(session, t.key.set(number))
}

func (t *selfTester) nextValue() []byte {
	size := t.random.below(300)
	at := t.random.below(1_000_000)
	return t.pool[at : at+size : at+size]
}

func (t *selfTester) batch(session Session) error {
	for range 10 {
		isDelete := t.random.below(3) == 0
		key := t.key.set(t.random.below(testKeys))
		var err error
		if isDelete {
			err = session.BatchDelete(key)
		} else {
			err = session.BatchPut(key, t.nextValue())
		}
		if err != nil {
			return err
		}
	}
	return session.Commit()
}

func (t *selfTester) seek(session Session, key []byte) error {
	cursor, err := session.NewCursor()
	if err != nil {
		return err
	}
	valid := cursor.Seek(key)
	for step := 1; valid; step++ {
		t.digest.entry(cursor.Key(), cursor.Value())
		if step == testSteps {
			return cursor.Close()
		}
		valid = cursor.Next()
	}
	t.digest.endOfScan()
	return cursor.Close()
}

func (t *selfTester) whole(session Session, forwards bool) error {
	cursor, err := session.NewCursor()
	if err != nil {
		return err
	}
	begin, step := cursor.First, cursor.Next
	if !forwards {
		begin, step = cursor.Last, cursor.Prev
	}
	for valid := begin(); valid; valid = step() {
		t.digest.entry(cursor.Key(), cursor.Value())
	}
	t.digest.endOfScan()
	return cursor.Close()
}
