#include "lockstep/batch_norm.h"

#include <string>
#include <vector>

namespace lockstep {
namespace {

using ModulePointer = std::shared_ptr<torch::nn::Module>;

// Replaces one child of a Sequential when it is a Plain.
template <class Plain, class Synchronised>
bool replace_as(torch::nn::SequentialImpl& parent, torch::nn::AnyModule& child,
                const std::string& name, const std::shared_ptr<Group>& group) {
  const auto plain = std::dynamic_pointer_cast<Plain>(child.ptr());
  if (!plain) {
    return false;
  }
  const auto synchronised = std::make_shared<Synchronised>(plain->options, group);
  synchronised->adopt(*plain);
  synchronised->train(plain->is_training());
  child = torch::nn::AnyModule(synchronised);
  parent.replace_module(name, ModulePointer(synchronised));
  return true;
}

std::int64_t replace_children(torch::nn::SequentialImpl& parent,
                              const std::shared_ptr<Group>& group) {
  using namespace torch::nn;
  std::int64_t replaced = 0;
  const std::vector<std::string> names = parent.named_children().keys();
  auto child = parent.begin();
  for (const std::string& name : names) {
    replaced += replace_as<BatchNorm1dImpl, SyncBatchNorm1dImpl>(parent, *child, name, group) ||
                replace_as<BatchNorm2dImpl, SyncBatchNorm2dImpl>(parent, *child, name, group) ||
                replace_as<BatchNorm3dImpl, SyncBatchNorm3dImpl>(parent, *child, name, group);
    ++child;
  }
  return replaced;
}

bool is_batch_norm(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&module) != nullptr;
}

// Names of the batch norms whose parent is no Sequential.
std::vector<std::string> irreplaceable(torch::nn::Module& module) {
  std::vector<std::string> names;
  if (is_batch_norm(module)) {
    names.emplace_back("the module itself");
  }
  for (const auto& parent : module.named_modules()) {
    if (std::dynamic_pointer_cast<torch::nn::SequentialImpl>(parent.value())) {
      continue;
    }
    for (const auto& child : parent.value()->named_children()) {
      if (is_batch_norm(*child.value())) {
        names.push_back((parent.key().empty() ? "" : parent.key() + ".") + child.key());
      }
    }
  }
  return names;
}

}  // namespace

std::int64_t convert_sync_batch_norm(torch::nn::Module& module,
                                     const std::shared_ptr<Group>& group) {
  const std::vector<std::string> fixed = irreplaceable(module);
  if (!fixed.empty()) {
    std::string list;
    for (const std::string& name : fixed) {
      list += (list.empty() ? "" : ", ") + name;
    }
    throw UsageError(
        "convert_sync_batch_norm replaces batch norms inside Sequential only, and "
        "these are members of classes, whose type is fixed: " +
        list + "; declare them as lockstep::SyncBatchNorm");
  }
  std::int64_t replaced = 0;
  for (const ModulePointer& child : module.modules()) {
    if (const auto sequential = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(child)) {
      replaced += replace_children(*sequential, group);
    }
  }
  return replaced;
}

}  // namespace lockstep
