#include "summary/rule_docs.h"

#include <map>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

const std::map<std::string, std::string_view>& RuleTexts() {
  static const std::map<std::string, std::string_view> texts = {
      {"SGD",
       "v = momentum * v + lr * g; w = w - v.\n"
       "The learning rate is inside v, as in Caffe: when it drops, the earlier steps in v keep "
       "their size. PyTorch multiplies v by the learning rate instead."},
      {"Nesterov",
       "v' = momentum * v + lr * g; w = w - ((1 + momentum) * v' - momentum * v).\n"
       "Sutskever et al., ICML 2013, in Caffe's form."},
      {"Adam",
       "m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; w = w - lr * "
       "sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + delta), with t counted from 1.\n"
       "beta1 is the field momentum (set it to 0.9: its default is 0), beta2 is momentum2. "
       "Kingma and Ba, arXiv:1412.6980."},
      {"AdamW",
       "m and v as in Adam, of the gradient without weight decay; w = w - lr * (m / (1 - "
       "beta1^t) / (sqrt(v / (1 - beta2^t)) + delta) + decay * w), with decay = weight_decay * "
       "decay_mult.\n"
       "beta1 is the field momentum (set it to 0.9: its default is 0), beta2 is momentum2. "
       "Loshchilov and Hutter, arXiv:1711.05101."},
      {"RMSProp",
       "h = rms_decay * h + (1 - rms_decay) * g^2; w = w - lr * g / (sqrt(h) + delta).\n"
       "Tieleman and Hinton, lecture 6.5, 2012."},
      {"AdaGrad",
       "h = h + g^2; w = w - lr * g / (sqrt(h) + delta).\n"
       "Duchi et al., JMLR 12, 2011."},
      {"AdaDelta",
       "h = momentum * h + (1 - momentum) * g^2; d = g * sqrt((s + delta) / (h + delta)); s = "
       "momentum * s + (1 - momentum) * d^2; w = w - lr * d.\n"
       "Zeiler, arXiv:1212.5701."},
      {"LARS",
       "local = trust_coefficient * |w| / (|g| + decay * |w|), or 1 if |w| or |g| is 0; v = "
       "momentum * v + lr * local * (g + decay * w); w = w - v, with g without weight decay "
       "and decay = weight_decay * decay_mult.\n"
       "|w| and |g| are norms of one array of weights. Arrays with decay_mult 0 have local = "
       "1. You, Gitman and Ginsburg, arXiv:1708.03888."},
      {"SAG",
       "h = momentum * h + (1 - momentum) * g; w = w - lr * h.\n"
       "A running average of the gradient, as NVIDIA Caffe names it."},
      {"CD",
       "SGD on the gradient of contrastive divergence, which an RBM layer computes as cd_param "
       "says.\n"
       "Hinton, Neural Computation 14, 2002."},
      {"LBFGS",
       "w = w - a * H * g, with H the inverse Hessian that the last pairs of steps and "
       "gradient changes describe, and a found by a line search; lbfgs_param sets both.\n"
       "Each step evaluates the loss of one batch several times, plus weight_decay * |w|^2 / "
       "2. It suits large batches without random changes. Nocedal and Wright, Numerical "
       "Optimization, algorithms 7.4 and 7.5."},
  };
  return texts;
}

}  // namespace

std::string_view RuleText(const std::string& rule) {
  const auto found = RuleTexts().find(rule);
  if (found == RuleTexts().end()) throw Error(ErrorCode::kInternal, Join(rule, " has no text"));
  return found->second;
}

}  // namespace trainer
