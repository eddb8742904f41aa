#include <cstdio>
#include <memory>

#include "shardpack/error.h"
#include "shardpack/pack.h"
#include "tools/common/exit_status.h"
#include "tools/common/human.h"
#include "tools/common/progress_bar.h"
#include "tools/common/run_main.h"
#include "tools/common/validators.h"
#include "tools/shardpack/commands.h"
#include "tools/shardpack/convert_options.h"

namespace shardpack::tools {
namespace {

constexpr char kFooter[] =
    R"(Each record becomes a file named by its key, or as the member of the archive that it came from; with --images keep
byte for byte as it went in. Filtered pixels become PNG. Where packing changed the encoding, the extension is made to
fit: a.bmp becomes a.png, and a.bmp.png where there is an a.png already. Nothing that exists is overwritten. Labels and metadata:
shardpack list.

Examples:
  shardpack extract packed -o photos
  shardpack extract packed -o photos.tar --to tar)";

struct Arguments {
  std::string dataset, output, to = "folder", progress = "auto";
};

int RunExtract(const Arguments& arguments) {
  ProgressBar bar(ParseProgressStyle(arguments.progress));
  ExtractOptions options;
  options.dataset = arguments.dataset;
  options.output = arguments.output;
  options.to = arguments.to == "tar" ? ExtractTo::kTar : ExtractTo::kFolder;
  options.progress = [&](const PackProgress& progress) { bar.Show(progress); };
  options.stop = &Stopped();
  CatchSignals();
  const std::uint64_t files = Extract(options);
  bar.Clear();
  std::fprintf(stderr, "extracted %s to %s\n", Counted(files, "file").c_str(), Escaped(arguments.output).c_str());
  return kDone;
}

}  // namespace

void AddExtract(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("extract", "Turn a dataset back into files");
  const auto arguments = std::make_shared<Arguments>();
  command->footer(kFooter);
  AddDatasetOption(*command, arguments->dataset);
  command->add_option("-o,--output", arguments->output, "A new or empty folder, or a new tar file")
      ->required()
      ->check(NotEmpty())
      ->type_name("DIR|FILE");
  command->add_option("--to", arguments->to, "What to make")
      ->capture_default_str()
      ->check(OneOf({"folder", "tar"}))
      ->type_name("folder|tar");
  AddProgressOption(*command, arguments->progress);
  command->callback([arguments, &status] { status = RunExtract(*arguments); });
}

}  // namespace shardpack::tools
