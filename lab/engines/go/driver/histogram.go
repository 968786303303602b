package driver

import "math/bits"

// 32 buckets for every power of two of nanoseconds: values below 32 have their own, the others an
// error below 3 %.
const bucketCount = 60 * 32

func bucketOf(nanos uint64) int {
	if nanos < 32 {
		return int(nanos)
	}
	exponent := bits.Len64(nanos) - 1
	return (exponent-4)*32 + int(nanos>>(exponent-5)&31)
}

func middleOf(bucket int) float64 {
	if bucket < 32 {
		return float64(bucket)
	}
	return (float64(32+bucket%32) + 0.5) * float64(uint64(1)<<(bucket/32-1))
}

type histogram struct {
	counts   [bucketCount]uint64
	total    uint64
	nanos    uint64
	greatest uint64
}

func (h *histogram) add(nanos, times uint64) {
	h.counts[bucketOf(nanos)] += times
	h.total += times
	h.nanos += nanos * times
	h.greatest = max(h.greatest, nanos)
}

func (h *histogram) merge(other *histogram) {
	for i, count := range other.counts {
		h.counts[i] += count
	}
	h.total += other.total
	h.nanos += other.nanos
	h.greatest = max(h.greatest, other.greatest)
}

func (h *histogram) meanMicros() float64 {
	if h.total == 0 {
		return 0
	}
	return float64(h.nanos) / float64(h.total) / 1000
}

func (h *histogram) microsAt(quantile float64) float64 {
	rank := uint64(quantile * float64(h.total))
	seen := uint64(0)
	for i, count := range h.counts {
		seen += count
		if seen > rank {
			return min(middleOf(i), float64(h.greatest)) / 1000
		}
	}
	return h.maxMicros()
}

func (h *histogram) maxMicros() float64 {
	return float64(h.greatest) / 1000
}
