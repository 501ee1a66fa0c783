#include "parallel/kept_shard.h"

#include "base/range.h"
#include "parallel/device.h"

#include <memory>
#include <utility>

namespace lockstep::parallel {
namespace {

void drop_shard(void* shard) { delete static_cast<KeptShard*>(shard); }

Span byte_span(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr(), static_cast<std::int64_t>(tensor.nbytes()), Dtype::u8};
}

}  // namespace

KeptShard shard_of(const at::Tensor& tensor, int rank, int ranks) {
  const torch::NoGradGuard no_grad;
  const at::Tensor values = tensor.detach().contiguous();
  const auto bytes = static_cast<std::int64_t>(values.nbytes());
  const Range block = block_of(bytes, ranks, rank);
  const at::Tensor all =
      torch::from_blob(values.mutable_data_ptr(), {bytes}, at::TensorOptions(torch::kUInt8));
  // In a mapping of its own: in the heap it would lie behind what is freed next, and keep it there.
  const c10::Storage storage(c10::Storage::use_byte_size_t{},
                             static_cast<std::size_t>(block.size()),
                             make_cpu_device()->allocate(block.size()), /*allocator=*/nullptr,
                             /*resizable=*/false);
  at::Tensor kept = at::empty({0}, torch::kUInt8).set_(storage, 0, {block.size()}, {1});
  kept.copy_(all.narrow(0, block.begin, block.size()));
  return {rank, ranks, kept};
}

void keep_only(at::Tensor& tensor, KeptShard shard, const std::string& why) {
  const torch::NoGradGuard no_grad;
  auto owned = std::make_unique<KeptShard>(std::move(shard));
  c10::DataPtr nothing(nullptr, owned.get(), &drop_shard, at::kCPU);
  [[maybe_unused]] KeptShard* const by_pointer = owned.release();
  const c10::Storage storage(c10::Storage::use_byte_size_t{}, tensor.nbytes(), std::move(nothing),
                             /*allocator=*/nullptr, /*resizable=*/false);
  const at::Tensor freed = at::empty({0}, tensor.options()).set_(storage, 0, tensor.sizes());
  storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(why);
  tensor.set_data(freed);
}

const KeptShard* kept_shard(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) {
    return nullptr;
  }
  const c10::DataPtr& data = tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  return data.get_deleter() == &drop_shard ? static_cast<const KeptShard*>(data.get_context())
                                           : nullptr;
}

void explain(const at::Tensor& tensor, const std::string& why) {
  tensor.storage().unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(
      why);
}

at::Tensor gather_kept(const at::Tensor& tensor, Group& group, const std::string& name) {
  const KeptShard& shard = *kept_shard(tensor);
  at::Tensor all = torch::empty(tensor.sizes(), tensor.options().requires_grad(false));
  group.all_gather(byte_span(shard.bytes), byte_span(all), {.name = "initial " + name}).wait();
  return all;
}

}  // namespace lockstep::parallel
