// CRC-32C by the processor's instruction, under the name that LevelDB's sources ask for when they
// are built with HAVE_CRC32C. Debian has no library of that name. Where the processor lacks the
// instruction, Extend returns 0: LevelDB notices and computes the checksum itself.

#ifndef LAB_CRC32C_H_
#define LAB_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crc32c {

#if defined(__x86_64__)

namespace internal {

// Bytes of each of the three lanes that are computed side by side: the instruction takes three
// cycles, and a processor begins one in every cycle.
constexpr size_t kLane = 256;

inline uint64_t Load(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) inline uint32_t Step(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(__builtin_ia32_crc32di(crc, word));
}

// What becomes of a checksum when kLane bytes of zeros follow, by each of its four bytes. A
// checksum is linear, so the four are added.
struct Shift {
  uint32_t table[4][256];

  __attribute__((target("sse4.2"))) Shift() {
    for (uint32_t place = 0; place < 4; place++) {
      for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte << (8 * place);
        for (size_t at = 0; at < kLane; at += 8) crc = Step(crc, 0);
        table[place][byte] = crc;
      }
    }
  }

  uint32_t operator()(uint32_t crc) const {
    return table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^ table[2][crc >> 16 & 255] ^
           table[3][crc >> 24];
  }
};

__attribute__((target("sse4.2"))) inline uint32_t Extend(uint32_t crc, const uint8_t* data,
                                                         size_t size) {
  static const Shift shift;
  crc = ~crc;
  for (; size >= 3 * kLane; data += 3 * kLane, size -= 3 * kLane) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t at = 0; at < kLane; at += 8) {
      crc = Step(crc, Load(data + at));
      second = Step(second, Load(data + kLane + at));
      third = Step(third, Load(data + 2 * kLane + at));
    }
    crc = shift(shift(crc) ^ second) ^ third;
  }
  for (; size >= 8; data += 8, size -= 8) crc = Step(crc, Load(data));
  for (; size > 0; data++, size--) crc = __builtin_ia32_crc32qi(crc, *data);
  return ~crc;
}

}  // namespace internal

inline uint32_t Extend(uint32_t crc, const uint8_t* data, size_t size) {
  static const bool can = __builtin_cpu_supports("sse4.2");
  return can ? internal::Extend(crc, data, size) : 0;
}

#else

inline uint32_t Extend(uint32_t, const uint8_t*, size_t) { return 0; }

#endif

}  // namespace crc32c

#endif  // LAB_CRC32C_H_
