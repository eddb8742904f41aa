#include "tools/common/run_main.h"
#include "tools/shardpack/commands.h"

namespace {

constexpr char kFooter[] = R"(Examples:
  shardpack convert photos/ -o packed          pack a folder with one sub-folder a class
  shardinfo packed                             what is in it
  shardpack list packed                        its records
  shardpack cat packed cats/1.jpg > 1.jpg      one image as it went in
  shardpack verify packed                      every checksum
  shardpack extract packed -o photos-again     back to files
  shardpack append packed more-photos/         new shards; old ones stay as they are
  shardpack amend packed --drop blurred.jsonl  without the records that a ledger names
  shardpack repair packed/shard-00003-*.shard  what is whole of a damaged shard

Each command explains itself: shardpack convert --help)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Pack image datasets into compressed, checked, indexed shards.", "shardpack"};
  app.footer(kFooter);
  app.set_version_flag("--version", "shardpack " SHARDPACK_VERSION);
  app.require_subcommand(1);
  int status = 0;
  using namespace shardpack::tools;
  AddConvert(app, status);
  AddPlan(app, status);
  AddSeal(app, status);
  AddStatus(app, status);
  AddVerify(app, status);
  AddList(app, status);
  AddCat(app, status);
  AddExtract(app, status);
  AddAppend(app, status);
  AddAmend(app, status);
  AddRepair(app, status);
  AddBatch(app, status);
  return RunMain(app, argc, argv, status);
}
