#include "trainer/base/text/synonyms.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace trainer {
namespace {

// A name, and the other names between blanks, in lower case without '_' and '-'. One word may be
// another name of several: the candidates decide.
using Names = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kEpochWords =
    " epoch epochs maxepoch maxepochs numepochs nepochs trainepochs ";

constexpr auto kSynonyms = std::to_array<Names>({
    // Fields of a solver.
    {"base_lr", " lr learningrate baselearningrate initiallr initlr lr0 eta "},
    {"type", " optimizer optim optimiser updaterule "},
    {"max_iter", " iterations iters maxiters maxiterations numiterations maxsteps numsteps "},
    {"max_epoch", kEpochWords},
    {"lr_policy", " scheduler lrscheduler lrschedule schedule learningratepolicy decaypolicy "},
    {"gamma", " lrdecay decayrate lrgamma decayfactor "},
    {"stepvalue", " milestones lrsteps boundaries stepvalues "},
    {"weight_decay", " wd l2 l2reg weightdecay regularization "},
    {"momentum", " beta beta1 rho "},
    {"momentum2", " beta2 "},
    {"delta", " eps epsilon "},
    {"clip_gradients", " clipgrad gradclip clipnorm clipgradnorm maxgradnorm gradientclipval "},
    {"clip_value", " clipvalue clipgradvalue clipgradbyvalue "},
    {"decay_on_bias_and_norm", " normweightdecay biasweightdecay nodecay "},
    {"iter_size", " accumulationsteps gradientaccumulationsteps accumulategradbatches accumgrad "},
    {"random_seed", " seed randomstate "},
    {"display", " loginterval logevery logfreq printfreq printevery "},
    {"snapshot", " saveinterval saveevery savesteps checkpointinterval checkpointevery "},
    {"test_interval", " evalinterval evalevery evalsteps valinterval validationinterval "},
    {"test_iter", " evaliters valiters testiters testiterations "},
    {"patience", " earlystopping earlystop "},
    {"warmup_iter", " warmup warmupsteps warmupiters warmupiterations "},
    {"ema_decay", " ema emadecay "},
    // Fields of a net, and a flag.
    {"batch_size", " batch bs minibatch batches "},
    {"batch", " batchsize bs minibatch "},
    {"num_output", " filters outchannels outfeatures units neurons channels outputs numfilters "},
    {"kernel_size", " kernel ksize filtersize "},
    {"pad", " padding "},
    {"group", " groups numgroups "},
    {"bias_term", " bias usebias "},
    {"dropout_ratio", " dropout rate droprate dropprob p prob probability keepprob "},
    {"bottom", " input inputs "},
    {"top", " output outputs "},
    {"source", " path dataset database db file lmdb "},
    {"mirror", " flip horizontalflip randomflip "},
    {"weight_filler", " weightinit kernelinitializer initializer init weightfiller "},
    {"bias_filler", " biasinit biasinitializer "},
    // Messages of layers.
    {"convolution_param", " convparam conv2dparam "},
    {"inner_product_param", " ipparam fcparam linearparam denseparam "},
    {"pooling_param", " poolparam "},
    {"dice_loss_param", " diceparam "},
    {"focal_loss_param", " focalparam softmaxfocallossparam sigmoidfocallossparam "},
    {"hinge_loss_param", " hingeparam "},
    {"contrastive_loss_param", " contrastiveparam "},
    {"infogain_loss_param", " infogainparam "},
    {"loss_param", " softmaxlossparam softmaxwithlossparam crossentropyparam "},
    {"batch_norm_param", " batchnormparam "},
    {"layer_norm_param", " layernormparam "},
    // Fillers.
    {"msra", " he henormal heinit kaiming kaimingnormal kaiminguniform heuniform "},
    {"xavier", " glorot glorotuniform glorotnormal xavieruniform xaviernormal lecun "},
    {"gaussian", " normal randn randomnormal truncatednormal "},
    {"uniform", " rand randomuniform "},
    {"constant", " zeros zero ones const fixed "},
    // Policies of the learning rate.
    {"fixed", " constant const none "},
    {"step", " steplr staircase "},
    {"multistep", " multisteplr piecewise piecewiseconstant "},
    {"poly", " polynomial linear "},
    {"exp", " exponential exponentiallr "},
    {"cosine", " cos cosineannealing cosineannealinglr cosinedecay "},
    {"plateau", " reducelronplateau reduceonplateau "},
    // Types of layers.
    {"Convolution", " conv conv1d conv2d conv3d "},
    {"Deconvolution", " deconv convtranspose2d conv2dtranspose transposedconvolution "},
    {"InnerProduct", " linear dense fc fullyconnected ip "},
    {"Pooling", " pool maxpool maxpool2d maxpooling2d avgpool avgpool2d averagepooling2d "},
    {"BatchNorm", " batchnormalization batchnorm2d "},
    {"SoftmaxWithLoss", " softmaxloss crossentropy crossentropyloss nllloss "},
    {"SigmoidCrossEntropyLoss", " bce bceloss bcewithlogits bcewithlogitsloss "},
    {"EuclideanLoss", " mse mseloss l2loss meansquarederror "},
    {"L1Loss", " mae maeloss l1 meanabsoluteerror "},
    {"SmoothL1Loss", " huber huberloss smoothl1 "},
    {"KLDivergenceLoss", " kldiv kldivloss kldivergence kullbackleibler "},
    {"DiceLoss", " dice "},
    {"SoftmaxFocalLoss", " focal focalloss "},
    {"SigmoidFocalLoss", " binaryfocalloss sigmoidfocal "},
    {"HingeLoss", " hinge svm "},
    {"Eltwise", " add sum mul multiply residual "},
    {"Concat", " cat concatenate join "},
    {"Embed", " embedding "},
    {"DropPath", " stochasticdepth "},
    {"AVE", " average avg mean "},
    {"MAX", " maximum "},
});

constexpr std::string_view kEpochs =
    "The length of a run is max_epoch, or max_iter in iterations; both are fields of the solver "
    "('trainer check' prints the iterations of an epoch)";
constexpr std::string_view kBatch =
    "The batch size is batch_size in the net's data layer; 'trainer train --batch=N' sets it for "
    "one run";

constexpr auto kAdvice = std::to_array<Names>({
    {kEpochs, kEpochWords},
    {kBatch, " batch batchsize bs minibatch "},
});

// Returns `word` as the tables have it: in lower case, without '_' and '-', and between blanks.
// Returns "" if nothing is left or if the word itself contains a blank.
std::string Plain(std::string_view word) {
  std::string plain = " ";
  for (const char c : word) {
    if (c == ' ') return "";
    if (c == '_' || c == '-') continue;
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain.size() == 1 ? "" : plain + " ";
}

}  // namespace

std::string Synonym(std::string_view word, std::span<const std::string> candidates) {
  const std::string plain = Plain(word);
  if (plain.empty()) return "";
  for (const auto& [name, others] : kSynonyms) {
    if (others.find(plain) == std::string_view::npos) continue;
    const auto found = std::ranges::find(candidates, name);
    if (found != candidates.end()) return *found;
  }
  return "";
}

std::string_view AdviceFor(std::string_view word) {
  const std::string plain = Plain(word);
  if (plain.empty()) return "";
  const auto* const found = std::ranges::find_if(kAdvice, [&](const Names& advice) {
    return advice.second.find(plain) != std::string_view::npos;
  });
  return found == kAdvice.end() ? "" : found->first;
}

}  // namespace trainer
