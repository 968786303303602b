package driver

// key is the buffer of one key: decimal digits with leading zeros, and a dot behind them if the key
// is to be missing.
type key struct {
	bytes  []byte
	digits int
}

func newKey(size uint64, missing bool) key {
	bytes := make([]byte, size, size+1)
	if missing {
		bytes = append(bytes, '.')
	}
	return key{bytes: bytes, digits: int(size)}
}

// set returns the key of a number, which is valid until the next call.
func (k *key) set(number uint64) []byte {
	for i := k.digits - 1; i >= 0; i-- {
		k.bytes[i] = byte('0' + number%10)
		number /= 10
	}
	return k.bytes
}

const (
	leastPool  = 1 << 20
	poolValues = 16
	// Half of a piece of the pool: each half stands there twice, so that snappy halves it.
	halfPiece = 50
)

// newPool makes the bytes that values are cut from.
func newPool(seed, longest uint64) []byte {
	size := int(max(leastPool, poolValues*longest))
	r := newRandom(seed, 0, 0)
	pool := make([]byte, 0, size+2*halfPiece)
	for len(pool) < size {
		for range halfPiece {
			pool = append(pool, byte(' '+r.below(95)))
		}
		pool = append(pool, pool[len(pool)-halfPiece:]...)
	}
	return pool[:size]
}

// values are those of one thread: one after the other out of the pool, all of one size or each of
// its own.
type values struct {
	pool     []byte
	size     uint64
	sizes    uint64
	position uint64
}

func newValues(pool []byte, size, greatest uint64) values {
	sizes := uint64(1)
	if greatest > size {
		sizes = greatest - size + 1
	}
	return values{pool: pool, size: size, sizes: sizes}
}

func (v *values) next(r *random) []byte {
	size := v.size
	if v.sizes > 1 {
		size += r.below(v.sizes)
	}
	if v.position+size > uint64(len(v.pool)) {
		v.position = 0
	}
	value := v.pool[v.position : v.position+size : v.position+size]
	v.position += size
	return value
}
