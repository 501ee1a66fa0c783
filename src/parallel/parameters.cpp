#include "parallel/parameters.h"

#include "comm/together.h"
#include "parallel/kept_shard.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace lockstep::parallel {
namespace {

torch::Dtype held_as(const std::string& name, const at::Tensor& tensor,
                     const Precision& precision) {
  const torch::Dtype own = tensor.scalar_type();
  if (own != torch::kFloat32) {
    return own;
  }
  return precision.keep_f32 && precision.keep_f32(name) ? torch::kFloat32 : precision.parameters;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line;
    text += '\n';
  }
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::string line_or_nothing(const std::vector<std::string>& lines, std::size_t i) {
  return i < lines.size() ? "'" + lines[i] + "'" : std::string("nothing");
}

}  // namespace

std::vector<NamedParameter> floating_parameters(const torch::nn::Module& module,
                                                const Precision& precision) {
  std::vector<NamedParameter> parameters;
  std::set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& tensor = item.value();
    if (tensor.defined() && tensor.is_floating_point() &&
        seen.insert(tensor.unsafeGetTensorImpl()).second) {
      parameters.push_back({item.key(), tensor, held_as(item.key(), tensor, precision)});
    }
  }
  return parameters;
}

std::vector<NamedParameter> trainable_parameters(const torch::nn::Module& module,
                                                 const Precision& precision) {
  std::vector<NamedParameter> parameters;
  std::set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().defined() || !item.value().requires_grad() ||
        !seen.insert(item.value().unsafeGetTensorImpl()).second) {
      continue;
    }
    dtype_of(item.value().scalar_type());  // throws for a type that can't be trained
    parameters.push_back({item.key(), item.value(), held_as(item.key(), item.value(), precision)});
    if (!item.value().device().is_cpu()) {
      throw UsageError("parameter '" + item.key() + "' is on " + item.value().device().str() +
                       "; only CPU tensors are built: call module->to(torch::kCPU)");
    }
  }
  if (parameters.empty()) {
    throw UsageError(
        "the module has no trainable parameter; set requires_grad on at least one before "
        "making the Parallel");
  }
  return parameters;
}

void convert_frozen(torch::nn::Module& module, const Precision& precision) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) {
    if (item.value().defined() && !item.value().requires_grad()) {
      const torch::Dtype target = held_as(item.key(), item.value(), precision);
      item.value().set_data(item.value().to(target));
    }
  }
}

void broadcast_values(Group& group, at::Tensor& tensor, std::string_view name) {
  if (group.size() == 1) {
    return;
  }
  at::Tensor bytes = tensor.detach().contiguous();
  const Span span(bytes.mutable_data_ptr(), static_cast<std::int64_t>(bytes.nbytes()), Dtype::u8);
  group.broadcast(span, 0, {.name = name}).wait();
  if (!bytes.is_alias_of(tensor)) {
    tensor.copy_(bytes);
  }
}

std::vector<std::string> describe(const torch::nn::Module& module) {
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& name, const at::Tensor& tensor, const char* role) {
    std::ostringstream line;
    line << name;
    if (tensor.defined()) {
      line << " " << tensor.sizes() << " " << c10::toString(tensor.scalar_type());
    }
    line << " " << role << (kept_shard(tensor) != nullptr ? " in shards" : "");
    lines.push_back(line.str());
  };
  for (const auto& item : module.named_parameters()) {
    const bool trained = item.value().defined() && item.value().requires_grad();
    add(item.key(), item.value(), trained ? "trained" : "frozen");
  }
  for (const auto& item : module.named_buffers()) {
    add(item.key(), item.value(), "buffer");
  }
  return lines;
}

void verify_equal_lists(Group& group, const std::vector<std::string>& lines,
                        std::string_view what) {
  if (group.size() == 1) {
    return;
  }
  const std::vector<std::string> texts =
      comm::gather_texts(group, join(lines), "verify " + std::string(what));
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) {
      continue;
    }
    const std::vector<std::string> first = split(texts[0]);
    const std::vector<std::string> other = split(texts[rank]);
    std::size_t i = 0;
    while (i < first.size() && i < other.size() && first[i] == other[i]) {
      ++i;
    }
    std::ostringstream out;
    out << "ranks disagree on the model's " << what << ": rank 0 has " << first.size() << ", rank "
        << rank << " has " << other.size() << "; the first that differs is number " << i + 1 << ": "
        << line_or_nothing(first, i) << " on rank 0, " << line_or_nothing(other, i) << " on rank "
        << rank << "; build the same model on every rank";
    throw Mismatch(out.str());
  }
}

}  // namespace lockstep::parallel
