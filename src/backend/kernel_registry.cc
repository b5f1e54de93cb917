#include "kernel_registry.h"

#include <glog/logging.h>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// Formats lengths of axes as "5 x 5".
std::string Lengths(const std::vector<int64_t>& lengths) {
  std::string text;
  for (const int64_t length : lengths) text += Join(text.empty() ? "" : " x ", length);
  return text;
}

}  // namespace

namespace kernel_registry_internal {

void FailForTwoOfARank(const std::string& name, const std::string& other) {
  throw Error(ErrorCode::kInternal, Join("'", name, "' and '", other,
                                         "' are candidates of one rank: which of them is asked "
                                         "first must not depend on the linker"));
}

void FailForNone(std::string_view what, const std::vector<std::string>& declined) {
  std::string reasons;
  for (const std::string& line : declined) reasons += Join(reasons.empty() ? "" : "; ", line);
  throw Error(ErrorCode::kUnavailable, Join(what, ": this device has no implementation for it (",
                                            reasons.empty() ? "none" : reasons, ")"));
}

bool LogsChoices() { return VLOG_IS_ON(1); }

void LogChoice(std::string_view what, const std::string& desc, const std::string& name,
               const std::vector<std::string>& declined) {
  VLOG(1) << what << " of " << desc << ": " << name;
  for (const std::string& line : declined) VLOG(1) << "  declined: " << line;
}

}  // namespace kernel_registry_internal

std::string Describe(const GemmDesc& desc) {
  return Join(desc.m, " x ", desc.k, desc.trans_a ? " transposed" : "", " times ", desc.k, " x ",
              desc.n, desc.trans_b ? " transposed" : "", ", ", NameOf(desc.dtype), " to ",
              NameOf(desc.out_dtype));
}

std::string Describe(const ConvDesc& desc) {
  return Join(desc.InShape().ToString(), " to ", desc.OutShape().ToString(), " ",
              NameOf(desc.dtype), ", kernel ", Lengths(desc.kernel), ", stride ",
              Lengths(desc.stride), ", ", desc.group, desc.group == 1 ? " group" : " groups");
}

std::string Describe(const PoolDesc& desc) {
  return Join(desc.InShape().ToString(), " to ", desc.OutShape().ToString(), " ",
              NameOf(desc.dtype));
}

std::string Describe(const LrnDesc& desc) {
  return Join(desc.shape.ToString(), " ", NameOf(desc.dtype));
}

}  // namespace trainer
