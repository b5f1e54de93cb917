#include "rows_run.h"

#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {

RowsFolder::RowsFolder() {
  constexpr int kRows = 26, kWidth = 6;
  std::vector<float> rows, labels;
  for (int i = 0; i < kRows * kWidth; ++i) rows.push_back(static_cast<float>(i * i % 19) / 10 - 1);
  for (int i = 0; i < kRows; ++i) labels.push_back(static_cast<float>(i % 4));
  Hdf5Appender file(folder_ / "rows.h5");
  file.Append("x", std::vector<int64_t>{kRows, kWidth}, rows);
  file.Append("label", std::vector<int64_t>{kRows}, labels);
  file.Flush();
  WriteText(folder_ / "list.txt", folder_ / "rows.h5");
}

SolverSpec RowsFolder::Spec(std::string net, const std::string& fields, int batch) const {
  for (const auto& [name, value] : {std::pair<std::string, std::string>("BATCH", Join(batch)),
                                    {"ROWS", folder_ / "list.txt"}}) {
    for (size_t at = net.find(name); at != net.npos; at = net.find(name)) {
      net.replace(at, name.size(), value);
    }
  }
  WriteText(folder_ / "net.prototxt", net);
  const bool has_policy = fields.find("lr_policy") != fields.npos;
  WriteText(folder_ / "solver.prototxt",
            Join("net: '", folder_ / "net.prototxt", "'\nsnapshot_prefix: '", folder_ / "s", "'\n",
                 has_policy ? "" : "lr_policy: 'fixed' ", "display: 1 ", fields));
  return LoadSolver(folder_ / "solver.prototxt");
}

void RunRanks(int count, bool eager, const std::string& snapshot,
              const std::function<void(const SolverOptions&, ThreadGroup&)>& run) {
  Meeting meeting(count);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadGroup group(meeting, rank, eager);
      SolverOptions options;
      options.group = &group;
      options.snapshot = snapshot;
      run(options, group);
    });
  }
}

}  // namespace trainer
