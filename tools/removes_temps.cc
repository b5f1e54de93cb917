#include "removes_temps.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "trainer/base/atomic_file.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Under another name first: whoever still writes it cannot put it in place half removed.
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

void EndBy(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  kill(getpid(), signal);
}

}  // namespace

void RemoveTempsOnSignal(const std::vector<std::string>& folders) {
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
    for (const std::string& folder : folders) RemoveOwnTemps(folder);
    EndBy(signal);
  }).detach();
}

}  // namespace trainer
