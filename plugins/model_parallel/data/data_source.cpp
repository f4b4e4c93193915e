#include "data/data_source.hpp"

#include "core/loss_config.hpp"
#include "data/cifar_source.hpp"
#include "data/image_folder_source.hpp"
#include "data/image_source.hpp"
#include "data/synthetic_source.hpp"
#include "data/tensor_source.hpp"
#include "data/text_source.hpp"

namespace troupe::mp {

DataSource::~DataSource() = default;

Result<void> check_class_targets(const DataOptions& options, const std::string& where) {
  if (!options.need_targets || !wants_numbers(options.loss)) return {};
  return bad_input(where,
                   "targets are class indices, " + describe(options.loss) + " cannot use them",
                   "write the loss cross_entropy");
}

std::vector<std::string> fields_of(const DataOptions& options) {
  if (!options.need_targets) return {"inputs"};
  return {"inputs", "targets"};
}

Result<std::unique_ptr<DataSource>> open_data(const v1::Data& data, const DataOptions& options) {
  switch (data.kind_case()) {
    case v1::Data::kSynthetic: return open_synthetic(data, options);
    case v1::Data::kTensors: return open_tensors(data, options);
    case v1::Data::kFashionMnist:
    case v1::Data::kIdx: return open_images(data, options);
    case v1::Data::kCifar: return open_cifar(data, options);
    case v1::Data::kImageFolder: return open_image_folder(data, options);
    case v1::Data::kText: return open_text(data, options);
    default:
      return bad_input(options.where, "no kind of data",
                       "write synthetic, tensors, fashion_mnist, idx, cifar, image_folder or text");
  }
}

}  // namespace troupe::mp
