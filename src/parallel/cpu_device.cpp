// CPU tensors: kernels run at once on the calling thread, so ordering asks for nothing but waiting.
#include "base/invariant.h"
#include "parallel/device.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace lockstep::parallel {
namespace {

struct Mapping {
  void* address;
  std::size_t bytes;
};

void unmap(void* context) {
  auto* mapping = static_cast<Mapping*>(context);
  ::munmap(mapping->address, mapping->bytes);
  delete mapping;
}

optim::ConstVector vector_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr(), dtype_of(tensor.scalar_type())};
}

class CpuDevice final : public Device {
 public:
  // A mapping of its own: huge pages where the kernel gives them, and freed at once when dropped
  // (memory freed by malloc stays with the process).
  c10::DataPtr allocate(std::int64_t bytes) override {
    const std::size_t size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    void* address =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
      throw SystemError("mmap of " + std::to_string(bytes) + " bytes for flat memory: " +
                        std::strerror(errno) + "; use a smaller model or fewer ranks on this host");
    }
    ::madvise(address, size, MADV_HUGEPAGE);
    return {address, new Mapping{address, size}, &unmap, at::kCPU};
  }

  void convert(optim::Vector destination, const at::Tensor& source) override {
    optim::convert(destination, vector_of(source), source.numel());
  }
  void accumulate(optim::Vector sum, const at::Tensor& source) override {
    optim::accumulate(sum, vector_of(source), source.numel());
  }
  void add(optim::Vector sum, optim::ConstVector other, std::int64_t count) override {
    optim::accumulate(sum, other, count);
  }
  void clear(optim::Vector values, std::int64_t count) override {
    std::memset(values.data, 0, static_cast<std::size_t>(count * size_of(values.dtype)));
  }
  void scale(optim::Vector values, double factor, std::optional<Dtype> round_to,
             std::int64_t count) override {
    optim::scale(values, factor, round_to, count);
  }
  void add_squares(optim::SquareSum& sum, optim::ConstVector values, std::int64_t count) override {
    sum.add(values.data, values.dtype, count);
  }
  void adamw(const optim::AdamWVectors& vectors, const optim::AdamWStep& step,
             std::int64_t count) override {
    optim::adamw(vectors, step, count);
  }
  void sgd(const optim::SgdVectors& vectors, const optim::SgdStep& step,
           std::int64_t count) override {
    optim::sgd(vectors, step, count);
  }

  void communication_follows_compute() override {}
  void compute_follows(Work& work) override { work.wait(); }
  void host_follows_compute() override {}
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

Dtype dtype_of(torch::Dtype dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return Dtype::f32;
    case torch::kFloat64:
      return Dtype::f64;
    case torch::kBFloat16:
      return Dtype::bf16;
    case torch::kFloat16:
      return Dtype::f16;
    default:
      throw UsageError(std::string("a trainable parameter or gradient has dtype ") +
                       c10::toString(dtype) + "; expected float, double, bfloat16 or half");
  }
}

torch::Dtype torch_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return torch::kFloat64;
    case Dtype::bf16:
      return torch::kBFloat16;
    case Dtype::f16:
      return torch::kFloat16;
    default:
      LOCKSTEP_INVARIANT(static_cast<int>(dtype), ==, static_cast<int>(Dtype::f32));
      return torch::kFloat32;
  }
}

}  // namespace lockstep::parallel
