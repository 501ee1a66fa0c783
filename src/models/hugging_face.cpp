#include "models/hugging_face.h"

#include "checkpoint/pending_file.h"
#include "checkpoint/safetensors.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace lockstep::models {
namespace {

namespace fs = std::filesystem;
using checkpoint::NamedTensor;
using checkpoint::SafetensorsFile;
using torch::Tensor;

constexpr const char* kHead = "lm_head.weight";

bool is_gpt2(const LanguageModel& model) {
  return std::holds_alternative<Gpt2Config>(model.configuration());
}

std::string bare(const std::string& name) {
  for (const std::string_view prefix : {"transformer.", "model."}) {
    if (name.starts_with(prefix)) {
      return name.substr(prefix.size());
    }
  }
  return name;
}

// GPT-2's projections are [in, out] in its files.
bool lies_transposed(const LanguageModel& model, const std::string& name) {
  constexpr std::array kProjections{"attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight",
                                    "mlp.c_proj.weight"};
  return is_gpt2(model) && std::ranges::any_of(kProjections, [&](const char* projection) {
           return name.ends_with(projection);
         });
}

// What old files hold besides parameters: masks and angles that the model computes.
bool is_buffer(const std::string& name) {
  constexpr std::array kBuffers{".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"};
  return std::ranges::any_of(kBuffers,
                             [&](const char* buffer) { return ("." + name).ends_with(buffer); });
}

std::string shape_text(torch::IntArrayRef shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::set<std::string> shards_of(const std::string& index) {
  std::ifstream file(index, std::ios::binary);
  const auto listed = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!listed.is_object() || !listed.contains("weight_map") || !listed["weight_map"].is_object()) {
    throw UsageError(index + ": expected an object with weight_map, tensor names to files");
  }
  std::set<std::string> shards;
  for (const auto& [name, shard] : listed["weight_map"].items()) {
    if (!shard.is_string()) {
      throw UsageError(index + ": weight_map: '" + name + "': expected a file, found " +
                       shard.dump());
    }
    shards.insert(shard.get<std::string>());
  }
  return shards;
}

std::vector<SafetensorsFile> files_of(const std::string& folder) {
  const std::string whole = folder + "/model.safetensors";
  const std::string index = whole + ".index.json";
  std::vector<SafetensorsFile> files;
  if (fs::exists(whole)) {
    files.emplace_back(whole);
  } else if (fs::exists(index)) {
    for (const std::string& shard : shards_of(index)) {
      files.emplace_back(folder + "/" + shard);
    }
  } else {
    throw UsageError(folder +
                     ": expected model.safetensors or model.safetensors.index.json, found neither; "
                     "save the model as safetensors");
  }
  return files;
}

// The tensors of a folder by bare name; what is taken is no longer left over.
class FolderTensors {
 public:
  explicit FolderTensors(const std::string& folder) : files_(files_of(folder)) {
    for (const SafetensorsFile& file : files_) {
      for (const auto& [name, tensor] : file.tensors()) {
        if (!tensors_.emplace(bare(name), tensor).second) {
          throw UsageError(file.path() + ": '" + name + "' comes twice in this folder");
        }
      }
    }
  }
  std::optional<NamedTensor> take(const std::string& name) {
    const auto found = tensors_.extract(name);
    return found ? std::optional(found.mapped()) : std::nullopt;
  }
  const std::map<std::string, NamedTensor>& left_over() const { return tensors_; }

 private:
  std::vector<SafetensorsFile> files_;
  std::map<std::string, NamedTensor> tensors_;
};

std::optional<torch::Dtype> torch_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return torch::kFloat32;
    case Dtype::f16:
      return torch::kFloat16;
    case Dtype::bf16:
      return torch::kBFloat16;
    default:
      return std::nullopt;
  }
}

// Copies, since a file's tensors need not be aligned.
Tensor tensor_of(const NamedTensor& saved, torch::Dtype dtype) {
  Tensor tensor = torch::empty(saved.shape, dtype);
  std::memcpy(tensor.mutable_data_ptr(), saved.data, static_cast<std::size_t>(saved.bytes()));
  return tensor;
}

// What is wrong with `saved` as the values of `parameter`; nothing when it has been copied.
std::optional<std::string> copy_into(const Tensor& parameter, const NamedTensor& saved,
                                     bool transposed) {
  const std::vector<std::int64_t> shape = (transposed ? parameter.t() : parameter).sizes().vec();
  const auto dtype = torch_dtype(saved.dtype);
  if (!dtype || saved.shape != shape) {
    return "'" + saved.name + "' expected f32, f16 or bf16 " + shape_text(shape) + ", found " +
           std::string(name_of(saved.dtype)) + " " + shape_text(saved.shape);
  }
  const Tensor values = tensor_of(saved, *dtype);
  parameter.copy_(transposed ? values.t() : values);
  return std::nullopt;
}

bool same_bytes(const NamedTensor& a, const NamedTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.data, b.data, static_cast<std::size_t>(a.bytes())) == 0;
}

// A file may hold a tied head too; it must then be the embedding.
void take_tied_head(FolderTensors& tensors, const std::optional<NamedTensor>& embedding,
                    std::vector<std::string>& wrong) {
  const auto head = tensors.take(kHead);
  if (head && embedding && !same_bytes(*head, *embedding)) {
    wrong.push_back(std::string("'") + kHead + "' differs from '" + embedding->name +
                    "', to which config.json ties it");
  }
}

[[noreturn]] void refuse(const std::string& folder, const std::vector<std::string>& wrong) {
  constexpr std::size_t kMostNamed = 8;
  std::string text = folder + ": its tensors are not of the model in config.json: ";
  for (std::size_t i = 0; i < std::min(kMostNamed, wrong.size()); ++i) {
    text += (i == 0 ? "" : "; ") + wrong[i];
  }
  if (wrong.size() > kMostNamed) {
    text += "; and " + std::to_string(wrong.size() - kMostNamed) + " more";
  }
  throw UsageError(text);
}

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw SystemError(folder + ": can't be made: " + error.message());
  }
}

}  // namespace

void load_folder(const std::string& folder, LanguageModel& model) {
  const torch::NoGradGuard no_gradients;
  FolderTensors tensors(folder);
  std::vector<std::string> wrong;
  std::optional<NamedTensor> embedding;
  for (const auto& item : model.named_parameters()) {
    const auto saved = tensors.take(bare(item.key()));
    if (!embedding) {
      embedding = saved;  // the first parameter
    }
    const std::optional<std::string> complaint =
        saved ? copy_into(item.value(), *saved, lies_transposed(model, item.key()))
              : "'" + item.key() + "' is missing";
    if (complaint) {
      wrong.push_back(*complaint);
    }
  }
  take_tied_head(tensors, embedding, wrong);
  for (const auto& [name, tensor] : tensors.left_over()) {
    if (!is_buffer(name)) {
      wrong.push_back("'" + tensor.name + "' is not of this model");
    }
  }
  if (!wrong.empty()) {
    refuse(folder, wrong);
  }
}

void export_folder(const std::string& folder, const LanguageModel& model,
                   const std::string& configuration) {
  make_folder(folder);
  std::vector<Tensor> kept;
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_parameters()) {
    const Tensor values = item.value().detach().to(torch::kFloat32);
    kept.push_back((lies_transposed(model, item.key()) ? values.t() : values).contiguous());
    tensors.push_back(
        {item.key(), Dtype::f32, kept.back().sizes().vec(), kept.back().const_data_ptr()});
  }
  checkpoint::write_safetensors(folder + "/model.safetensors", std::move(tensors),
                                {{"format", "pt"}});
  checkpoint::write_text(folder + "/config.json", configuration);
}

}  // namespace lockstep::models
