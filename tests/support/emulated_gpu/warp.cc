// Shuffles and votes of a warp whose members have all arrived.

#include <cstring>

#include "support/emulated_gpu/block_run.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

// Returns the lane whose value a shuffle gives `lane`, or `lane` itself.
int Source(const WarpCall& call, int lane) {
  const int begin = lane & ~(call.width - 1), end = begin + call.width;
  int from = lane;
  switch (call.op) {
    case WarpOp::kShuffleIndex:
      return begin + (call.argument & (call.width - 1));
    case WarpOp::kShuffleUp:
      from = lane - call.argument;
      break;
    case WarpOp::kShuffleDown:
      from = lane + call.argument;
      break;
    default:
      return (lane ^ call.argument) < end ? lane ^ call.argument : lane;
  }
  return from >= begin && from < end ? from : lane;
}

bool IsVote(WarpOp op) { return op >= WarpOp::kAny; }

unsigned CountVotes(const WarpCalls& calls, WarpOp op) {
  unsigned votes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((calls.members >> lane & 1) != 0 && calls.call[lane]->argument != 0) votes |= 1u << lane;
  }
  return op == WarpOp::kAll ? votes == calls.members : votes;
}

}  // namespace

const char* NameOf(WarpOp op) {
  static constexpr const char* kNames[] = {"__shfl_sync",     "__shfl_up_sync", "__shfl_down_sync",
                                           "__shfl_xor_sync", "__any_sync",     "__all_sync",
                                           "__ballot_sync",   "__syncwarp"};
  return kNames[static_cast<int>(op)];
}

std::string CompleteWarp(const WarpCalls& calls) {
  std::string problem;
  for (int lane = 0; lane < 32; ++lane) {
    if ((calls.members >> lane & 1) == 0) continue;
    const WarpCall& call = *calls.call[lane];
    if (IsVote(call.op)) {
      const unsigned votes = CountVotes(calls, call.op);
      std::memcpy(call.result, &votes, sizeof(votes));
      continue;
    }
    if (call.width < 1 || call.width > 32 || (call.width & (call.width - 1)) != 0) {
      std::memset(call.result, 0xff, call.bytes);
      problem = trainer::Join(NameOf(call.op), " with a width of ", call.width);
      continue;
    }
    const int from = Source(call, lane);
    if ((calls.members >> from & 1) != 0) {
      std::memcpy(call.result, calls.call[from]->value, call.bytes);
      continue;
    }
    std::memset(call.result, 0xff, call.bytes);
    problem = trainer::Join(NameOf(call.op), " at ", call.site.file, ":", call.site.line, ": lane ",
                            lane, " reads from lane ", from, ", which does not take part");
  }
  return problem;
}

}  // namespace emulated_gpu
