class Caterva < Formula
  desc "N-dimensional compressed arrays in Blosc2 frames"
  homepage "https://github.com/caterva/caterva"
  url "https://github.com/caterva/caterva/releases/download/v0.8.0/caterva-0.8.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "BSD-3-Clause"
  head "https://github.com/caterva/caterva.git", branch: "main"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "xxhash" => :build
  depends_on "c-blosc2"
  depends_on "jansson"
  depends_on "libmicrohttpd"
  depends_on "libpng"
  depends_on "zstd"

  uses_from_macos "curl"
  uses_from_macos "zlib"

  def install
    args = %w[-DBUILD_SHARED_LIBS=ON]
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *args, *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
    pkgshare.install "examples/01-first-array/main.c"
  end

  test do
    system ENV.cc, pkgshare/"main.c", "-I#{include}", "-L#{lib}", "-lcaterva", "-o", "first-array"
    assert_match "item (40, 3, 5) is 4006", shell_output("./first-array")
    assert_match version.to_s, shell_output("#{bin}/caterva --version")
  end
end
