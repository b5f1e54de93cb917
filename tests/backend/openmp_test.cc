#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <vector>

#include "trainer/base/thread/thread_team.h"

extern "C" {
void GOMP_parallel_start(void (*call)(void*), void* data, unsigned threads);
void GOMP_parallel_end();
void GOMP_barrier();
bool GOMP_loop_static_start(long start, long end, long step, long block, long* from, long* to);
bool GOMP_loop_static_next(long* from, long* to);
void GOMP_loop_end_nowait();
int omp_get_num_threads();
int omp_get_thread_num();
}

namespace trainer {
namespace {

class OpenMpTest : public testing::Test {
 protected:
  OpenMpTest() { SetTeamSize(3); }
  ~OpenMpTest() override { SetTeamSize(1); }
};

// Runs the loop "for (i = start; i < end; i += step)" as GCC 4.8 compiles it.
struct CountedLoop {
  long start, end, step, block;
  std::array<std::atomic<int>, 40> calls{}, thread{};

  static void Run(void* data) {
    auto& loop = *static_cast<CountedLoop*>(data);
    long from = 0;
    long to = 0;
    bool more = GOMP_loop_static_start(loop.start, loop.end, loop.step, loop.block, &from, &to);
    while (more) {
      for (long i = from; loop.step > 0 ? i < to : i > to; i += loop.step) {
        loop.calls[static_cast<size_t>(i)]++;
        loop.thread[static_cast<size_t>(i)] = omp_get_thread_num();
      }
      more = GOMP_loop_static_next(&from, &to);
    }
    GOMP_loop_end_nowait();
    GOMP_barrier();
  }

  void RunOnAll() {
    GOMP_parallel_start(Run, this, 0);
    Run(this);
    GOMP_parallel_end();
  }
};

TEST_F(OpenMpTest, LoopsOfOldCompilersRunEachIterationOnce) {
  for (const long block : {0L, 1L, 4L}) {
    for (const auto& [start, end, step] : std::vector<std::array<long, 3>>{
             {0, 40, 1}, {3, 32, 7}, {39, -1, -1}, {2, 3, 1}, {5, 5, 1}}) {
      CountedLoop loop{start, end, step, block};
      loop.RunOnAll();
      std::array<int, 40> expected{};
      for (long i = start; step > 0 ? i < end : i > end; i += step)
        ++expected[static_cast<size_t>(i)];
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(loop.calls[i].load(), expected[i]) << i << ", blocks of " << block;
      }
    }
  }
}

TEST_F(OpenMpTest, ThreadsHaveTheBlocksThatOpenMpGivesThem) {
  CountedLoop whole{0, 8, 1, 0};
  whole.RunOnAll();
  CountedLoop blocks{0, 8, 1, 2};
  blocks.RunOnAll();
  std::vector<int> of_whole, of_blocks;
  for (size_t i = 0; i < 8; ++i) {
    of_whole.push_back(whole.thread[i]);
    of_blocks.push_back(blocks.thread[i]);
  }
  EXPECT_THAT(of_whole, testing::ElementsAre(0, 0, 0, 1, 1, 1, 2, 2));
  EXPECT_THAT(of_blocks, testing::ElementsAre(0, 0, 1, 1, 2, 2, 0, 0));
}

TEST_F(OpenMpTest, RegionsOfOldCompilersMayBeInsideOfOthers) {
  std::atomic<int> alone{0};
  const auto inner = [](void* data) {
    *static_cast<std::atomic<int>*>(data) += omp_get_num_threads();
  };
  for (int round = 0; round < 2; ++round) {
    GOMP_parallel_start(inner, &alone, 1);
    GOMP_parallel_start(inner, &alone, 1);
    inner(&alone);
    GOMP_parallel_end();
    GOMP_parallel_end();
    EXPECT_EQ(omp_get_num_threads(), 1);
  }
  EXPECT_EQ(alone.load(), 2);
  struct Nested {
    void (*inner)(void*);
    std::atomic<int> sum{0}, wrong{0};
  } nested{inner};
  const auto outer = [](void* data) {
    auto& nest = *static_cast<Nested*>(data);
    const int thread = omp_get_thread_num();
    GOMP_parallel_start(nest.inner, &nest.sum, 2);
    nest.inner(&nest.sum);
    GOMP_parallel_end();
    if (omp_get_thread_num() != thread || omp_get_num_threads() != 3) ++nest.wrong;
  };
  GOMP_parallel_start(outer, &nested, 3);
  outer(&nested);
  GOMP_parallel_end();
  EXPECT_EQ(nested.sum.load(), 3);
  EXPECT_EQ(nested.wrong.load(), 0);
}

}  // namespace
}  // namespace trainer
