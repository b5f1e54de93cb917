// Exports layers whose outputs are constants, and refuses layers that serve only training.

#include "export/layer_export.h"

namespace trainer {
namespace {

// Accepts a DummyData layer only if its fillers give constant values.
void CheckDummyData(const LayerExport& layer) {
  for (const caffe::FillerParameter& filler : layer.proto().dummy_data_param().data_filler()) {
    if (filler.type() == "constant") continue;
    layer.RefuseIn("dummy_data_param", "data_filler",
                   "it draws new numbers in every pass; use an Input layer");
  }
}

// Adds no nodes, because the net itself declares the inputs.
void ExportNothing(const LayerExport&) {}

constexpr char kReadsData[] =
    "it reads data; make the net for predictions with 'trainer deploy', whose inputs are Input "
    "layers";
constexpr char kIsLoss[] =
    "it is for training and tests; make the net for predictions with 'trainer deploy'";

const RegisterExport kExportInput({"Input", "Silence", "HDF5Output"}, {ExportNothing});
const RegisterExport kExportConstants({"PriorBox", "Parameter"}, {.is_constant = true});
const RegisterExport kExportDummyData({"DummyData"},
                                      {.write = CheckDummyData, .is_constant = true});
const RegisterExport kExportData({"Data", "HDF5Data", "ImageData", "MemoryData", "WindowData"},
                                 {.why_not = kReadsData});
const RegisterExport kExportLosses({"Accuracy", "ContrastiveLoss", "DiceLoss", "EuclideanLoss",
                                    "HingeLoss", "InfogainLoss", "KLDivergenceLoss", "L1Loss",
                                    "MultinomialLogisticLoss", "SigmoidCrossEntropyLoss",
                                    "SigmoidFocalLoss", "SmoothL1Loss", "SoftmaxFocalLoss",
                                    "SoftmaxWithLoss", "TotalVariationLoss"},
                                   {.why_not = kIsLoss});

}  // namespace
}  // namespace trainer
