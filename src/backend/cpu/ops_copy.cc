#include <cstring>

#include "cpu/ops.h"
#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/nontemporal.h"

namespace trainer::cpu {
namespace {

// The least number of bytes that a thread copies.
constexpr int64_t kCopyGrainBytes = 1 << 16;

// Returns the offset of item i of the first `axes` axes, in elements.
int64_t Offset(const CopyDesc& desc, const int64_t* steps, int axes, int64_t i) {
  int64_t at = 0;
  for (int a = axes - 1; a >= 0; --a) {
    at += i % desc.length[a] * steps[a];
    i /= desc.length[a];
  }
  return at;
}

// Copies a single block in parts, so that the threads share it.
void CopySingle(const std::byte* from, std::byte* to, int64_t bytes, bool stream) {
  const int64_t parts = (bytes + kCopyGrainBytes - 1) / kCopyGrainBytes;
  StreamedRanges(parts, 1, stream, [=](int64_t begin, int64_t end) {
    const int64_t start = begin * kCopyGrainBytes;
    const auto size = static_cast<size_t>(std::min(end * kCopyGrainBytes, bytes) - start);
    stream ? StreamCopy(to + start, from + start, size)
           : static_cast<void>(std::memcpy(to + start, from + start, size));
  });
}

// Copies blocks that are contiguous in both arrays along the last axis, past the caches if the
// output is large and consists of whole lines.
void CopyInBlocks(const CopyDesc& desc, const std::byte* from, std::byte* to) {
  const auto size = static_cast<int64_t>(desc.element_bytes);
  const int outer = std::max(0, desc.axes - 1);
  const int64_t block = (desc.axes > 0 ? desc.length[outer] : 1) * size;
  constexpr int64_t kLine = 64;
  bool lines = block % kLine == 0 && reinterpret_cast<uintptr_t>(to) % kLine == 0;
  for (int a = 0; a < outer; ++a) lines = lines && desc.to_step[a] * size % kLine == 0;
  const int64_t bytes = desc.Count() * size;
  const bool stream = lines && Streams(to, std::max(desc.written_bytes, bytes), kLine);
  if (outer == 0) return CopySingle(from, to, block, stream);
  StreamedRanges(bytes / block, GrainOfBytes(block), stream, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const std::byte* const source = from + Offset(desc, desc.from_step, outer, b) * size;
      std::byte* const target = to + Offset(desc, desc.to_step, outer, b) * size;
      if (stream) {
        StreamCopy(target, source, static_cast<size_t>(block));
      } else {
        std::memcpy(target, source, static_cast<size_t>(block));
      }
    }
  });
}

// Copies single elements, for copies without contiguous blocks. The threads share lines. The lines
// run over the one of the two inner axes that has the larger stride in the source, so that the
// source is read in order within a line.
template <class T>
void CopyElements(const CopyDesc& desc, const T* from, T* to) {
  const int last = desc.axes - 1, other = desc.axes - 2;
  const bool swap = other >= 0 && desc.from_step[other] < desc.from_step[last];
  const int fast = swap ? other : last, slow = other < 0 || swap ? last : other;
  const int64_t columns = other < 0 ? 1 : desc.length[fast], rows = desc.length[slow];
  const int64_t from_column = desc.from_step[fast], to_column = desc.to_step[fast];
  const int outer = std::max(0, other);
  const auto lines = [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t matrix = line / rows, row = line % rows;
      const T* const in =
          from + Offset(desc, desc.from_step, outer, matrix) + row * desc.from_step[slow];
      T* const out = to + Offset(desc, desc.to_step, outer, matrix) + row * desc.to_step[slow];
      for (int64_t j = 0; j < columns; ++j) out[j * to_column] = in[j * from_column];
    }
  };
  ParallelRanges(desc.Count() / columns, MinChunk(columns), lines);
}

}  // namespace

void Copy(const CopyDesc& desc, const void* from, void* to) {
  if (desc.Count() == 0) return;
  const int last = desc.axes - 1;
  if (last < 0 || (desc.from_step[last] == 1 && desc.to_step[last] == 1)) {
    return CopyInBlocks(desc, static_cast<const std::byte*>(from), static_cast<std::byte*>(to));
  }
  const auto elements = [&](auto type) {
    using T = decltype(type);
    CopyElements(desc, static_cast<const T*>(from), static_cast<T*>(to));
  };
  if (desc.element_bytes == 1) return elements(uint8_t{});
  if (desc.element_bytes == 2) return elements(uint16_t{});
  if (desc.element_bytes == 4) return elements(uint32_t{});
  elements(uint64_t{});
}

void Convert(const ConstTensor& from, const Tensor& to) {
  DispatchCpuDtype(from.dtype, [&](auto in) {
    DispatchCpuDtype(to.dtype, [&](auto out) {
      using In = typename decltype(in)::Type;
      using Out = typename decltype(out)::Type;
      const In* const source = from.As<In>();
      Out* const target = to.As<Out>();
      ParallelFor(
          to.Count(), [=](int64_t i)
                          __attribute__((always_inline)) { Store(target[i], Load(source[i])); });
    });
  });
}

}  // namespace trainer::cpu
