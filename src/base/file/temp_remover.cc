#include "trainer/base/file/temp_remover.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "trainer/base/file/atomic_file.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Set before the first file is removed. The thread that waits for signals outlives all objects.
std::atomic<bool> ending_by_signal{false};

// Removes the temporary files and folders of this process in `folder`. Renames each before removing
// it, so that a thread that still writes it cannot put a half removed folder in its final place.
void RemoveOwnTemps(const std::string& folder) {
  const std::string own = TempPathFor("x").substr(2);  // without ".x"
  std::vector<fs::path> found;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') && name.ends_with(own)) found.push_back(entry->path());
  }
  for (const fs::path& temp : found) {
    const fs::path ended = TempPathFor(temp.string() + ".ended");
    fs::rename(temp, ended, failed);
    fs::remove_all(failed ? temp : ended, failed);
  }
}

// Ends the process by `signal`: restores its default action, unblocks it in this thread and sends
// it.
void EndBy(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  kill(getpid(), signal);
}

}  // namespace

TempRemover::TempRemover(const std::vector<std::string>& folders) {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_DFL) sigaddset(&ending, signal);  // nohup ignores SIGHUP
  }
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::thread([folders, ending] {
    int signal = 0;
    if (sigwait(&ending, &signal) != 0) return;
    ending_by_signal = true;
    for (const std::string& folder : folders) RemoveOwnTemps(folder);
    EndBy(signal);
  }).detach();
}

TempRemover::~TempRemover() {
  while (ending_by_signal) pause();
}

}  // namespace trainer
