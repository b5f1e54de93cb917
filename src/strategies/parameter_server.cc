// An asynchronous parameter server: the weights and the rule's state are in memory that all ranks
// share, in `servers` parts, each with a lock of its own. A rank brings the gradient that it made
// from the weights as it found them, applies it to those of now, and takes these along. With
// `dedicated_servers` the last `servers` ranks hold a part each, by parameter: they make no steps,
// but apply the gradients that the others send. Sources: J.
// Dean and others, "Large Scale Distributed Deep Networks", NIPS 2012; for the bound Q. Ho and
// others, "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS
// 2013.

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "apart.h"
#include "checks.h"
#include "gradient_mail.h"
#include "param_shares.h"

namespace trainer {
namespace {

class ParameterServer final : public ApartStrategy {
 public:
  explicit ParameterServer(const SolverSpec& spec)
      : ApartStrategy(spec),
        spec_(spec),
        servers_(spec.proto.strategy_param().servers()),
        bound_(spec.proto.strategy_param().staleness()),
        late_(spec.proto.strategy_param().late()),
        dedicated_(spec.proto.strategy_param().dedicated_servers()) {
    RequireAtLeast(spec, "servers", servers_, 1);
    RequireAtLeast(spec, "staleness", bound_, -1);
  }

  int Workers(int ranks) const override {
    return dedicated_ ? std::max(1, ranks - servers_) : ranks;
  }

  // All parts are this rank's until the update is stored, where no server has them.
  void BeforeUpdate(const UpdateRates& rates) override {
    numbers().Read(averages_, numbers().first_average());
    if (!dedicated_) {
      Load();
      AverageAverages();
      numbers().Write(averages_, numbers().first_average());
    }
    age_ = version() - seen_;
    const bool is_late = bound_ >= 0 && age_ > bound_;
    drops_ = is_late && late_ == caffe::StrategyParameter::DROP;
    if (is_late && late_ == caffe::StrategyParameter::SCALE) ScaleGradients();
    if (dedicated_ && !drops_) SendGradients(rates);
  }

  // What a server does until no rank makes steps any more.
  void Serve(const std::function<bool()>& stops) override {
    const int server = rank() - workers();
    while (IsAnyAtWork()) {
      bool idle = true;
      for (int worker = 0; worker < workers(); ++worker) {
        if (!mail_->HasMail(worker, server)) continue;
        idle = false;
        Apply(worker, server);
        mail_->Answer(worker, server);
      }
      peers().ThrowIfFailed();
      LookForDead();
      if (stops()) StopAll();
      if (idle) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  // What the ranks have of their own is no more than a copy.
  bool LaysDown() const override { return false; }

  void Share() override {
    if (servers_ > ranks()) {
      throw Error(ErrorCode::kUsage, spec_.Where("strategy_param"),
                  Join("strategy_param.servers is ", servers_, ", but there are ", ranks(),
                       " ranks to hold the weights; set it to at most ", ranks()));
    }
    if (seat().rule.EvaluatesAgain()) {
      spec_.Fail("type", Join("strategy 'parameter_server' takes one gradient of each batch, and ",
                              spec_.proto.type(),
                              " evaluates it more than once; take another type "
                              "or another strategy"));
    }
    if (dedicated_ && servers_ == ranks()) {
      throw Error(ErrorCode::kUsage, spec_.Where("strategy_param"),
                  Join("strategy_param.servers is ", servers_,
                       ", and with dedicated_servers none "
                       "of the ",
                       ranks(),
                       " ranks is left to train; start more ranks, or set it "
                       "to at most ",
                       ranks() - 1));
    }
    shared_ = ShareFloats(numbers().all());
    locks_ = ShareLocks(static_cast<size_t>(servers_));
    version_ = reinterpret_cast<std::atomic<int64_t>*>(peers().Allocate(sizeof(*version_)));
    averages_.resize(numbers().weights() - numbers().first_average());
    if (rank() == 0) numbers().Read(shared_);
    if (dedicated_) ShareOut();
  }

  // Servers have a part of the update each, the others none.
  void ShareOut() {
    const std::vector<Param*>& params = seat().objective.params();
    mail_.emplace(peers(), workers(), servers_,
                  seat().objective.Gradients().size() + averages_.size());
    own_params_ = OwnParams(params, {rank() - workers(), servers_});
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i]->averages) own_params_[i] = false;
    }
    if (seat().rule.SetShare(own_params_)) return;
    spec_.Fail("type", Join("a solver of type ", spec_.proto.type(),
                            " moves all weights at once, and with dedicated_servers each server "
                            "moves a part; take an update rule such as SGD"));
  }

  void SendGradients(const UpdateRates& rates) {
    const std::span<float> gradients = seat().objective.Gradients(), place = mail_->Place(rank());
    seat().device.CopyToHost(place.data(), gradients.data(), gradients.size_bytes());
    std::ranges::copy(averages_, place.subspan(gradients.size()).begin());
    mail_->Send(rank(), rates);
  }

  // A worker's gradient to the part of the weights that is this server's; running averages are the
  // first server's.
  void Apply(int worker, int server) {
    const std::span<float> gradients = seat().objective.Gradients(), place = mail_->Place(worker);
    seat().device.CopyToDevice(gradients.data(), place.data(), gradients.size_bytes());
    seat().rule.ApplyGradients(seat().objective, mail_->RatesOf(worker));
    const SharedLockScope lock(locks_[server], rank(), peers());
    if (server == 0) {
      std::ranges::copy(place.subspan(gradients.size()), averages_.begin());
      AverageAverages();
    }
    numbers().ReadParams(own_params_, shared_);
    if (server != 0) return;
    std::ranges::copy(averages_,
                      shared_.begin() + static_cast<std::ptrdiff_t>(numbers().first_average()));
    ++*version_;
  }

  int64_t version() const { return version_->load(std::memory_order_relaxed); }

  // Part by part, so that another rank may take the first while the last is being stored.
  template <class Use>
  void VisitParts(const Use& use) {
    const auto parts = static_cast<size_t>(servers_);
    for (size_t part = 0; part < parts; ++part) {
      const size_t begin = shared_.size() * part / parts, end = shared_.size() * (part + 1) / parts;
      use(locks_[part], shared_.subspan(begin, end - begin), begin);
    }
  }

  void Load() {
    VisitParts([&](SharedLock& lock, std::span<float> part, size_t begin) {
      lock.Acquire(rank(), peers());
      numbers().Write(part, begin);
    });
  }

  void Store() {
    VisitParts([&](SharedLock& lock, std::span<float> part, size_t begin) {
      numbers().Read(part, begin);
      lock.Release();
    });
  }

  void Release() {
    for (int part = 0; part < servers_; ++part) locks_[part].Release();
  }

  // Of batches: what this rank's last one changed becomes a part of what all have.
  void AverageAverages() {
    const size_t first = numbers().first_average();
    for (size_t i = 0; i < averages_.size(); ++i) {
      const float all = shared_[first + i];
      averages_[i] = all + (averages_[i] - all) / static_cast<float>(workers());
    }
  }

  void ScaleGradients() {
    const std::span<float> gradients = seat().objective.Gradients();
    gradients_.resize(gradients.size());
    seat().device.CopyToHost(gradients_.data(), gradients.data(), gradients.size_bytes());
    for (float& gradient : gradients_) gradient /= static_cast<float>(age_);
    seat().device.CopyToDevice(gradients.data(), gradients_.data(), gradients.size_bytes());
  }

  void Exchange(int64_t steps) override {
    if (dedicated_) {
      AwaitServers();
      TakeAll();
      tally(rank()).dropped += drops_ ? 1 : 0;
    } else if (drops_) {
      Reload();
      ++tally(rank()).dropped;
    } else {
      seen_ = ++*version_;
      Store();
    }
    NoteExchange(2 * static_cast<int64_t>(numbers().weights() * sizeof(float)), age_);
    AwaitSlowest(steps);
  }

  void AwaitServers() {
    while (!mail_->IsAnswered(rank())) {
      peers().ThrowIfFailed();
      LookForDead();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  void TakeAll() {
    Load();
    seen_ = version();
    Release();
  }

  // With all locks, which are free then.
  void Reload() {
    seen_ = version();
    numbers().Write(shared_);
    Release();
  }

  // By the bound no rank is more steps ahead of another one at work.
  void AwaitSlowest(int64_t steps) {
    const auto ahead = [&] {
      int64_t least = steps;
      for (int other = 0; other < workers(); ++other) {
        if (IsAtWork(other)) least = std::min<int64_t>(least, tally(other).steps);
      }
      return steps - least;
    };
    while (bound_ >= 0 && !Stops() && ahead() > bound_) {
      peers().ThrowIfFailed();
      LookForDead();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  // The weights of now; this rank's own were a copy of older ones.
  void EnterConsensus() override { TakeAll(); }

  const SolverSpec& spec_;
  int servers_, bound_;
  caffe::StrategyParameter::Late late_;
  std::span<float> shared_;  // weights, then the rule's state
  SharedLock* locks_ = nullptr;
  std::atomic<int64_t>* version_ = nullptr;  // updates so far
  std::vector<float> own_;                   // a copy of the shared ones
  std::vector<float> averages_, gradients_;
  int64_t seen_ = 0;  // the version that this rank's weights are
  int64_t age_ = 0;   // in versions, of the gradient at hand
  bool drops_ = false;
  bool dedicated_;
  std::optional<GradientMail> mail_;  // to servers that are ranks of their own
  std::vector<bool> own_params_;      // of this server
};

const RegisterStrategy<ParameterServer> kParameterServer("parameter_server");

}  // namespace
}  // namespace trainer
