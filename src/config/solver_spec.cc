#include "trainer/config/solver_spec.h"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>

#include <map>
#include <utility>

#include "checks/ignored_fields.h"
#include "checks/solver_checks.h"
#include "net_build.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/epochs.h"
#include "trainer/config/storage.h"
#include "trainer/config/upgrade/upgrade.h"
#include "upgrade/upgrade_solver.h"

namespace trainer {
namespace {

// Returns a field of the solver, and throws kInternal if it does not exist.
const google::protobuf::FieldDescriptor* SolverField(std::string_view name) {
  const auto* field = caffe::SolverParameter::descriptor()->FindFieldByName(std::string(name));
  if (field == nullptr) {
    throw Error(ErrorCode::kInternal, Join("SolverParameter has no field '", name, "'"));
  }
  return field;
}

// Finds, loads and counts the nets of a solver.
class NetFinder {
 public:
  NetFinder(const StateFlags& flags, Overrides* overrides, ErrorCollector* errors,
            SolverSpec* solver)
      : flags_(flags),
        overrides_(overrides),
        errors_(errors),
        solver_(*solver),
        proto_(solver->proto) {}

  // Fills solver.train, solver.tests and solver.nets. With a list of errors, tests are read even if
  // the training net is wrong.
  void Run() {
    ErrorCollector::Try(errors_, [&] { FindTrain(); });
    ErrorCollector::Try(errors_, [&] { FindTests(); });
  }

 private:
  // Returns the net of a file, which is read once even if several uses name it. Throws at the
  // solver's line if it does not exist. Returns null after an error that went to the list.
  const NetSpec* Load(const char* field, const std::string& name, int index = -1) {
    const std::string path = ResolvePath(name, solver_.file);
    if (const auto known = files_.find(path); known != files_.end()) return known->second;
    const NetSpec*& net = files_[path];
    ErrorCollector::Try(errors_, [&] {
      if (IsMissing(path)) {
        throw Error(ErrorCode::kNoInput, solver_.Where(field, index),
                    Join("the net file '", name, "' does not exist; tried ",
                         PathsTried(name, solver_.file)));
      }
      net = Keep(ReadNet(path));
    });
    return net;
  }

  // Returns a net that is written inside the solver, or null after an error that went to the list.
  const NetSpec* Inline(const char* field, const caffe::NetParameter& net, int index = -1) {
    const auto* tree = solver_.text->tree.GetTreeForNested(SolverField(field), index);
    const NetSpec* kept = nullptr;
    ErrorCollector::Try(errors_, [&] {
      NetSpec built = BuildNet(net, solver_.file, tree);
      LogUpgrades(built.upgrades);
      LogHints(built);
      kept = Keep(std::move(built));
    });
    return kept;
  }

  // Applies --set and the solver's default_forward_type to a net, checks its types, and stores it
  // in the solver.
  const NetSpec* Keep(NetSpec net) {
    if (overrides_ != nullptr) overrides_->ApplyTo(&net);
    if (proto_.has_default_forward_type()) {
      net.proto.set_default_forward_type(proto_.default_forward_type());
    }
    CheckStorage(net);
    solver_.nets.push_back(std::move(net));
    return &solver_.nets.back();
  }

  // Finds the training net, which exactly one of four fields must give. Its state is Caffe's: phase
  // TRAIN, then the net's own state, then train_state, then the flags.
  void FindTrain() {
    std::vector<std::string> given;
    for (const char* field : {"net", "net_param", "train_net", "train_net_param"}) {
      if (proto_.GetReflection()->HasField(proto_, SolverField(field))) given.push_back(field);
    }
    if (given.size() != 1) {
      const std::string all = "net, net_param, train_net or train_net_param";
      if (given.empty()) solver_.Fail("net", "there is no training net: give one of " + all);
      solver_.Fail(given[1], Join("the training net is given more than once (", JoinList(given),
                                  "); give one of ", all));
    }
    NetUse& use = solver_.train;
    if (proto_.has_net()) use = {Load("net", proto_.net()), {}, "net file: " + proto_.net()};
    if (proto_.has_net_param()) use = {Inline("net_param", proto_.net_param()), {}, "net_param"};
    if (proto_.has_train_net()) {
      use = {Load("train_net", proto_.train_net()), {}, "train_net file: " + proto_.train_net()};
    }
    if (proto_.has_train_net_param()) {
      use = {Inline("train_net_param", proto_.train_net_param()), {}, "train_net_param"};
    }
    use.state.set_phase(caffe::TRAIN);
    if (use.net != nullptr) use.state.MergeFrom(use.net->proto.state());
    use.state.MergeFrom(TrainState());
  }

  // Returns train_state with the flags' level and stages. The flags always set the level and always
  // add a stage, if only an empty one, as in Caffe.
  caffe::NetState TrainState() const {
    caffe::NetState state = proto_.train_state();
    if (state.has_level() && state.level() != flags_.level) {
      LOG(WARNING) << solver_.Where("train_state").ToString() << ": level " << state.level()
                   << " of train_state is replaced by --level=" << flags_.level;
    }
    state.set_level(flags_.level);
    for (const std::string& stage : flags_.stages) state.add_stage(stage);
    if (flags_.stages.empty()) state.add_stage("");
    return state;
  }

  // Finds the test nets: test_net_param, then test_net, then the training net once for each further
  // test_iter. Without test_iter, each test is one exact pass. Does nothing for test_interval: 0.
  void FindTests() {
    if (proto_.has_test_interval() && proto_.test_interval() == 0) return;  // no tests
    for (int i = 0; i < proto_.test_net_param_size(); ++i) {
      AddTest({Inline("test_net_param", proto_.test_net_param(i), i), {}, "test_net_param"});
    }
    for (int i = 0; i < proto_.test_net_size(); ++i) {
      AddTest(
          {Load("test_net", proto_.test_net(i), i), {}, "test_net file: " + proto_.test_net(i)});
    }
    const int named = static_cast<int>(solver_.tests.size());
    const bool shared = proto_.has_net() || proto_.has_net_param();
    if (proto_.test_iter().empty() && HasTestInterval(proto_)) {
      const int tests = std::max(named, shared ? 1 : 0);
      solver_.proto.mutable_test_iter()->Resize(tests, kExactPass);
    }
    CheckTestCount(named, shared);
    while (static_cast<int>(solver_.tests.size()) < proto_.test_iter_size()) {
      AddTest({solver_.train.net, {}, solver_.train.description});
    }
    CheckTests();
    for (size_t i = 0; i < solver_.tests.size(); ++i) {
      caffe::NetState& state = solver_.tests[i].state;
      state.set_phase(caffe::TEST);
      if (solver_.tests[i].net == nullptr) continue;
      state.MergeFrom(solver_.tests[i].net->proto.state());
      if (proto_.test_state_size() > 0) state.MergeFrom(proto_.test_state(static_cast<int>(i)));
    }
  }

  void AddTest(NetUse use) { solver_.tests.push_back(std::move(use)); }

  // Throws unless each test net has a test_iter. A `shared` net (net or net_param) may have more:
  // each further test_iter is one more test on it.
  void CheckTestCount(int named, bool shared) const {
    const int iters = proto_.test_iter_size();
    if (shared ? iters >= named : iters == named) return;
    solver_.Fail("test_iter", Join("there are ", named, " test nets and ", iters,
                                   " test_iter; give one test_iter per test net"));
  }

  // Throws if the numbers of tests and of test_state differ, or if only one of tests and
  // test_interval is given.
  void CheckTests() const {
    const size_t tests = solver_.tests.size();
    const auto states = static_cast<size_t>(proto_.test_state_size());
    if (states != 0 && states != tests) {
      solver_.Fail("test_state", Join("there are ", tests, " test nets and ", states,
                                      " test_state; give none, or one per test net"));
    }
    if (tests > 0 && !HasTestInterval(proto_)) {
      solver_.Fail("test_interval",
                   "there is a test net but no test_interval: give the number of iterations "
                   "between tests, or 0 for no tests");
    }
    if (tests == 0 && HasTestInterval(proto_)) {
      const std::string field =
          proto_.has_test_interval_epoch() ? "test_interval_epoch" : "test_interval";
      solver_.Fail(field, Join(field,
                               " is set, but test_iter is missing: give test_iter, the "
                               "number of batches per test, or remove ",
                               field));
    }
  }

  const StateFlags& flags_;
  Overrides* overrides_;
  ErrorCollector* errors_;
  SolverSpec& solver_;
  const caffe::SolverParameter& proto_;
  std::map<std::string, const NetSpec*> files_;
};

// Sets snapshot_prefix by Caffe's rule: the solver's path without its extension if none is given,
// and the solver's name in the folder if a folder is given.
void FillSnapshotPrefix(SolverSpec* solver) {
  caffe::SolverParameter& proto = solver->proto;
  const std::string& file = solver->file;
  const size_t dot = file.find_last_of('.');
  const bool has_extension = dot != std::string::npos && file.find('/', dot) == std::string::npos;
  const std::string bare = has_extension ? file.substr(0, dot) : file;
  if (!proto.has_snapshot_prefix()) {
    proto.set_snapshot_prefix(bare);
    LOG(INFO) << "snapshot_prefix was not specified and is set to " << bare;
  } else if (IsDirectory(proto.snapshot_prefix())) {
    proto.set_snapshot_prefix(JoinPath(proto.snapshot_prefix(), FileNameOf(bare)));
    LOG(INFO) << "snapshot_prefix was a directory and is replaced to " << proto.snapshot_prefix();
  }
}

}  // namespace

SourceRef SolverSpec::Where(std::string_view field, int index) const {
  const auto* known = SolverField(field);
  if (text == nullptr) return {file};
  const auto at = text->tree.GetLocation(known, known->is_repeated() ? std::max(index, 0) : -1);
  return at.line < 0 ? SourceRef{file} : SourceRef{file, at.line + 1, at.column + 1};
}

void SolverSpec::Fail(std::string_view field, const std::string& message, int index) const {
  throw Error(ErrorCode::kConfig, Where(field, index), message);
}

SolverSpec LoadSolver(const std::string& path, const StateFlags& flags, Overrides* overrides,
                      ErrorCollector* errors) {
  SolverSpec solver;
  solver.file = path;
  solver.text = ParseText(path, &solver.proto);
  if (overrides != nullptr) {
    const caffe::SolverParameter written = solver.proto;
    overrides->ApplyTo(&solver.proto);
    DropReplacedTimes(written, &solver.proto);
  }
  LogUpgrades(RewriteSolverType(&solver));
  FillSnapshotPrefix(&solver);
  SolverChecks(solver).Run(errors);
  NetFinder(flags, overrides, errors, &solver).Run();
  const bool all_read = errors == nullptr || errors->empty();
  if (overrides != nullptr && all_read) overrides->CheckAllUsed();
  return solver;
}

}  // namespace trainer
