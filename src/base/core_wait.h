#pragma once
// How a thread of a team waits, and how it learns that the cores are shared with other programs.

#include <atomic>
#include <cstdint>

namespace trainer {

// Spins while `word` holds `value`, for a bounded time: long while the cores are this program's
// own, short when threads of it had to wait for a core lately. Returns whether the word changed.
bool SpinWhile(const std::atomic<uint32_t>& word, uint32_t value);

// Sleeps unless `word` holds something else than `value`; returns after WakeAll, or for no reason.
void SleepWhile(std::atomic<uint32_t>& word, uint32_t value);
void WakeAll(std::atomic<uint32_t>& word);

// Called by each thread after its part of a region: every few milliseconds it reads how long the
// thread was ready to run and had no core. Returns SecondsWithoutCore() where it read it, else -1.
double NoteCoreWait();

}  // namespace trainer
