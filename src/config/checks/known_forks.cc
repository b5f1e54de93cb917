#include "trainer/config/checks/known_forks.h"

#include <algorithm>
#include <iterator>

namespace trainer {
namespace {

struct Origin {
  std::string_view name, fork;
};

constexpr std::string_view kSsd = "SSD", kSegNet = "SegNet", kFlowNet = "FlowNet",
                           kDeepLab = "DeepLab", kNvidia = "NVIDIA Caffe", kPspNet = "PSPNet",
                           kRfcn = "R-FCN", kFaces = "the forks for face recognition",
                           kRcnn = "Faster R-CNN", kYolo = "the YOLO forks", kOpenPose = "OpenPose",
                           kVideo = "C3D", kShuffle = "ShuffleNet", kSenet = "SENet",
                           kIntel = "Intel Caffe", kCrf = "CRF-RNN";

constexpr Origin kTypes[] = {
    {"AdaptiveBiasChannel", kDeepLab},
    {"AnnotatedData", kSsd},
    {"Axpy", kSenet},
    {"BN", "SegNet or PSPNet"},
    {"BoxAnnotatorOHEM", kRfcn},
    {"CPMData", kOpenPose},
    {"CenterLoss", kFaces},
    {"ChannelNorm", kFlowNet},
    {"Convolution3D", kVideo},
    {"Correlation", kFlowNet},
    {"CustomData", kFlowNet},
    {"DataAugmentation", kFlowNet},
    {"DenseImageData", kSegNet},
    {"DetectNetTransformation", kNvidia},
    {"DetectionEvaluate", kSsd},
    {"Downsample", kFlowNet},
    {"EvalDetection", kYolo},
    {"FlowAugmentation", kFlowNet},
    {"FlowWarp", kFlowNet},
    {"GenerateAugmentationParameters", kFlowNet},
    {"ImResize", kOpenPose},
    {"ImageSegData", kDeepLab},
    {"LabelSpecificMarginInnerProduct", kFaces},
    {"LpqLoss", kFlowNet},
    {"MarginInnerProduct", kFaces},
    {"MatRead", kDeepLab},
    {"MatWrite", kDeepLab},
    {"MultiBoxLoss", kSsd},
    {"MultiStageMeanfield", kCrf},
    {"Nms", kOpenPose},
    {"Pooling3D", kVideo},
    {"Proposal", kRcnn},
    {"RegionLoss", kYolo},
    {"Resample", kFlowNet},
    {"SegAccuracy", kDeepLab},
    {"ShuffleChannel", kShuffle},
    {"SimplerNMS", kIntel},
    {"SmoothL1LossOHEM", kRfcn},
    {"SoftmaxWithLossOHEM", kRfcn},
    {"TRT", kNvidia},
    {"TripletLoss", kFaces},
    {"Upsample", kSegNet},
    {"VideoData", kSsd},
    {"YoloDetectionOutput", kYolo},
};

constexpr Origin kFields[] = {
    {"adaptive_bias_channel_param", kDeepLab},
    {"annotated_data_param", kSsd},
    {"augmentation_param", kFlowNet},
    {"bn_param", "SegNet or PSPNet"},
    {"box_annotator_ohem_param", kRfcn},
    {"center_loss_param", kFaces},
    {"coeff_schedule_param", kFlowNet},
    {"convolution3d_param", kVideo},
    {"correlation_param", kFlowNet},
    {"cpm_transform_param", kOpenPose},
    {"dense_image_data_param", kSegNet},
    {"detectnet_augmentation_param", kNvidia},
    {"detectnet_groundtruth_param", kNvidia},
    {"detection_evaluate_param", kSsd},
    {"distort_param", kSsd},
    {"emit_constraint", kSsd},
    {"expand_param", kSsd},
    {"flow_warp_param", kFlowNet},
    {"imresize_param", kOpenPose},
    {"l1_loss_param", kFlowNet},
    {"lpq_loss_param", kFlowNet},
    {"margin_inner_product_param", kFaces},
    {"mat_read_param", kDeepLab},
    {"mat_write_param", kDeepLab},
    {"mem_param", kPspNet},
    {"multi_stage_meanfield_param", kCrf},
    {"multibox_loss_param", kSsd},
    {"nms_param", "SSD or OpenPose"},
    {"noise_param", kSsd},
    {"pooling3d_param", kVideo},
    {"region_loss_param", kYolo},
    {"resample_param", kFlowNet},
    {"resize_param", kSsd},
    {"seg_accuracy_param", kDeepLab},
    {"shuffle_channel_param", kShuffle},
    {"simpler_nms_param", kIntel},
    {"triplet_loss_param", kFaces},
    {"upsample_param", kSegNet},
    {"video_data_param", kSsd},
    {"yolo_detection_output_param", kYolo},
};

// Returns the fork that a table names for `name`, or "".
template <size_t kCount>
std::string_view ForkOf(const Origin (&origins)[kCount], std::string_view name) {
  const auto* const found = std::ranges::find(origins, name, &Origin::name);
  return found == std::end(origins) ? std::string_view() : found->fork;
}

}  // namespace

std::string_view ForkOfType(std::string_view type) { return ForkOf(kTypes, type); }

std::string_view ForkOfField(std::string_view field) { return ForkOf(kFields, field); }

}  // namespace trainer
