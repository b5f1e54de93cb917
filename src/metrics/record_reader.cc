#include "trainer/metrics/record_reader.h"

#include <cmath>
#include <limits>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/label_rule.h"
#include "trainer/metrics/predictions.h"

namespace trainer {
namespace {

constexpr float kNoTarget = std::numeric_limits<float>::quiet_NaN();

float ReadClass(const Comparison& comparison, float target) {
  const LabelRule rule{comparison.columns, comparison.has_ignore,
                       static_cast<int>(comparison.ignore)};
  const int label = rule.Read(target);
  if (label == kBadLabel) ThrowNoClass(target, comparison.targets, comparison.columns);
  return label == kIgnoredLabel ? kNoTarget : static_cast<float>(label);
}

float ReadLabel(const Comparison& comparison, float target) {
  if (comparison.has_ignore && std::trunc(target) == comparison.ignore) return kNoTarget;
  if (target == 0 || target == 1) return target;
  throw Error(ErrorCode::kData,
              Join("target ", target, " in '", EscapeControl(comparison.targets),
                   "' is neither 0 nor 1, so metrics of labels are not defined; make the targets "
                   "0 or 1, or ask for no metrics"));
}

float ReadTarget(const Comparison& comparison, float target) {
  if (comparison.kind == TargetKind::kClasses) return ReadClass(comparison, target);
  return comparison.kind == TargetKind::kLabels ? ReadLabel(comparison, target) : target;
}

}  // namespace

RecordReader::RecordReader(Net& net, const Comparison& comparison)
    : net_(net),
      comparison_(comparison),
      hook_(
          [this](const Net& of, NodeId id, Direction direction, const std::function<void()>& run) {
            if (id.number == comparison_.layer && direction == Direction::kForward) {
              const RunContext& context = of.context(id, direction);
              Copy(context.Input(0), context.Input(1));
            }
            run();
          }) {
  if (comparison_.layer >= 0) net_.AddHook(&hook_);
}

RecordReader::~RecordReader() { net_.RemoveHook(&hook_); }

void RecordReader::Copy(const ConstTensor& outputs, const ConstTensor& targets) {
  outputs_.resize(static_cast<size_t>(outputs.Count()));
  targets_.resize(static_cast<size_t>(targets.Count()));
  net_.ReadNchw(outputs, outputs_);
  net_.ReadNchw(targets, targets_);
  arranged_ = false;
}

// Moves the columns, which are `inner` numbers apart, next to each other.
void RecordReader::Arrange() {
  const auto columns = static_cast<size_t>(comparison_.columns);
  const auto inner = static_cast<size_t>(comparison_.inner);
  const size_t rows = outputs_.size() / columns;
  const bool one_target = comparison_.kind == TargetKind::kClasses;
  rows_.clear();
  rows_.reserve(rows * static_cast<size_t>(RowWidth(comparison_)));
  for (size_t row = 0; row < rows; ++row) {
    const size_t first = row / inner * columns * inner + row % inner;
    for (size_t c = 0; c < (one_target ? 1 : columns); ++c) {
      rows_.push_back(ReadTarget(comparison_, targets_[one_target ? row : first + c * inner]));
    }
    for (size_t c = 0; c < columns; ++c) rows_.push_back(outputs_[first + c * inner]);
  }
  arranged_ = true;
}

std::span<const float> RecordReader::Rows() {
  if (comparison_.layer < 0) {
    Copy(net_.Value(comparison_.outputs), net_.Value(comparison_.targets));
  }
  if (!arranged_) Arrange();
  return rows_;
}

size_t RecordReader::NumbersPerPass() const {
  const Graph& graph = net_.graph();
  const Shape shape = comparison_.layer < 0
                          ? graph.Find(comparison_.outputs).shape
                          : graph.values[graph.nodes[NodeId(comparison_.layer)].in[0]].shape;
  return static_cast<size_t>(shape.Count() / comparison_.columns * RowWidth(comparison_));
}

}  // namespace trainer
