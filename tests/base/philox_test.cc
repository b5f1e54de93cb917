#include "trainer/base/random/philox.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace trainer {
namespace {

using testing::ElementsAre;

std::vector<uint32_t> Block(uint64_t seed, uint32_t stream, uint32_t pass, uint64_t block) {
  const Philox4 words = PhiloxBlock({seed, stream}, pass, block);
  return {words.x, words.x + 4};
}

// The authors of Philox publish these vectors for philox4x32-10 (Random123, kat_vectors): counter
// words c0 to c3, key words k0 and k1.
TEST(PhiloxTest, GivesThePublishedAnswers) {
  EXPECT_THAT(Block(0, 0, 0, 0), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(Block(~uint64_t{0}, ~0u, ~0u, ~uint64_t{0}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(Block(0x299f31d0a4093822u, 0x03707344u, 0x13198a2eu, 0x85a308d3243f6a88u),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

// Calls cuRAND's generator on the host, which needs no GPU.
class CurandHost {
 public:
  CurandHost() {
    for (const char* name :
         {"libcurand.so.10", "libcurand.so", "/usr/local/cuda/lib64/libcurand.so.10"}) {
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  explicit operator bool() const { return library_ != nullptr; }

  std::vector<uint32_t> Generate(uint64_t seed, size_t count) const {
    constexpr int kPhilox = 161;  // CURAND_RNG_PSEUDO_PHILOX4_32_10
    const auto create = Function<int (*)(void**, int)>("curandCreateGeneratorHost");
    const auto set_seed =
        Function<int (*)(void*, unsigned long long)>("curandSetPseudoRandomGeneratorSeed");
    const auto generate = Function<int (*)(void*, unsigned*, size_t)>("curandGenerate");
    const auto destroy = Function<int (*)(void*)>("curandDestroyGenerator");
    void* generator = nullptr;
    std::vector<uint32_t> words(count);
    EXPECT_EQ(create(&generator, kPhilox), 0);
    EXPECT_EQ(set_seed(generator, seed), 0);
    EXPECT_EQ(generate(generator, words.data(), words.size()), 0);
    destroy(generator);
    return words;
  }

 private:
  template <class F>
  F Function(const char* name) const {
    return reinterpret_cast<F>(dlsym(library_, name));
  }

  void* library_ = nullptr;
};

// cuRAND numbers 65536 subsequences by the counter's third word, and takes a block of each in turn.
TEST(PhiloxTest, GivesTheNumbersOfCurand) {
  const CurandHost curand;
  if (!curand) GTEST_SKIP() << "there is no libcurand.so.10 on this machine";
  constexpr uint64_t kSeed = 0x123456789abcdef0, kSubsequences = 65536;
  const std::vector<uint32_t> words = curand.Generate(kSeed, 4 * (2 * kSubsequences + 1000));
  for (uint64_t b = 0; b < words.size() / 4; ++b) {
    const Philox4 want =
        PhiloxBlock({kSeed, 0}, static_cast<uint32_t>(b % kSubsequences), b / kSubsequences);
    for (int w = 0; w < 4; ++w) ASSERT_EQ(words[4 * b + w], want.x[w]) << "word " << 4 * b + w;
  }
}

}  // namespace
}  // namespace trainer
