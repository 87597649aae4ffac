#!/bin/sh
# What packagers ask of a build: a shared library alone and a static one alone, against a C-Blosc2
# of the system and without a network; completions and man pages; a target that uninstalls.
#
#   check_kinds.sh SOURCE_DIR SCRATCH_DIR LIBDIR BLOSC2_INCLUDE_DIR BLOSC2_LIBRARY_DIR
set -eu
source=$1 scratch=$2 libdir=$3 blosc2_include=$4 blosc2_library=$5

fail() { echo "$*" >&2; exit 1; }

rm -rf "$scratch"
mkdir -p "$scratch/system/lib/pkgconfig"
cd "$scratch"

# A C-Blosc2 as a distribution has it. The bootstrapped one beside the sources must not be taken.
cp -r "$blosc2_include" system/include
cp -P "$blosc2_library"/libblosc2.* system/lib
cat >system/lib/pkgconfig/blosc2.pc <<END
prefix=$scratch/system
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: blosc2
Description: C-Blosc2
Version: $(sed -n 's/^#define BLOSC2_VERSION_STRING *"\([0-9.]*\).*/\1/p' system/include/blosc2.h)
Libs: -L\${libdir} -lblosc2
Libs.private: -ldl -lm -pthread
Cflags: -I\${includedir}
END
export PKG_CONFIG_PATH="$scratch/system/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"

# Where the kernel allows it, a build has no network but a loopback device that is down.
alone=
unshare -rn true 2>unshare.log && alone='unshare -rn'
[ -n "$alone" ] || echo "the builds had a network: $(cat unshare.log)"

build() { # KIND ON|OFF OPTION...
    kind=$1 shared=$2
    shift 2
    $alone cmake -S "$source" -B "$kind" -G Ninja -DBUILD_SHARED_LIBS="$shared" -DCATERVA_LTO=OFF \
        -DCMAKE_C_FLAGS_RELEASE=-O0 "$@" >"$kind.log" 2>&1 || { cat "$kind.log"; exit 1; }
    grep -q "C-Blosc2 .* (system): $scratch/system/lib/" "$kind.log" ||
        fail "$kind: $(grep C-Blosc2 "$kind.log")"
    $alone cmake --build "$kind" >>"$kind.log" 2>&1 || { tail -n 30 "$kind.log"; exit 1; }
    cmake --install "$kind" --prefix "$scratch/$kind-prefix" >>"$kind.log"
}

installed() { (cd "$1-prefix" && find . ! -type d | sed 's|^\./||' | sort); }

# The example, by CMake and by pkg-config.
use() { # KIND
    cmake -S "$source/examples/01-first-array" -B "$1-example" \
        -DCMAKE_PREFIX_PATH="$scratch/$1-prefix" >>"$1.log"
    cmake --build "$1-example" >>"$1.log"
    flags=$(PKG_CONFIG_PATH=$scratch/$1-prefix/$libdir/pkgconfig:$PKG_CONFIG_PATH \
        pkg-config --cflags --libs caterva)
    # shellcheck disable=SC2086 # words
    ${CC:-cc} "$source/examples/01-first-array/main.c" $flags -o "$1-by-pkg-config"
    for program in "$1-example/first-array" "./$1-by-pkg-config"; do
        out=$(LD_LIBRARY_PATH=$scratch/$1-prefix/$libdir:$scratch/system/lib "$program")
        case $out in *"item (40, 3, 5) is 4006"*) ;; *) fail "$program printed $out" ;; esac
        readelf -d "$program" | grep NEEDED >"$1-needed"
        grep -q "libcaterva" "$1-needed" && echo shared || echo static
    done
}

# ---- Shared ----------------------------------------------------------------------

build shared ON -DCATERVA_REMOTE=OFF -DCATERVA_TREES=OFF -DCATERVA_JOBS=OFF -DCATERVA_SERVE=OFF
installed shared >shared.files
grep -q "^$libdir/libcaterva.so$" shared.files || fail "there is no libcaterva.so"
! grep -E '\.a$|StaticTargets|blosc2' shared.files || fail "a shared build installed these"
[ "$(use shared | sort -u)" = shared ] || fail "a user of the shared library has no libcaterva.so"

# ---- Static ----------------------------------------------------------------------

build static OFF
installed static >static.files
grep -q "^$libdir/libcaterva.a$" static.files || fail "there is no libcaterva.a"
! grep -E '\.so|CatervaTargets|blosc2' static.files || fail "a static build installed these"
[ "$(use static | sort -u)" = static ] || fail "a user of the static library needs libcaterva.so"

# ---- What is beside the library ----------------------------------------------------

for kind in shared static; do
    prefix=$scratch/$kind-prefix
    pages=$(cd "$prefix/share/man/man1" && ls)
    [ "$pages" = "$(cd "$source/man" && ls ./*.1 | sed 's|^\./||')" ] || fail "man pages: $pages"
    for file in bash:bash-completion/completions/caterva zsh:zsh/site-functions/_caterva \
        fish:fish/vendor_completions.d/caterva.fish; do
        env -i "$prefix/bin/caterva" completion "${file%%:*}" | cmp - "$prefix/share/${file#*:}" ||
            fail "$kind: ${file#*:} is not what caterva completion prints"
    done
done
completed=$(bash -c '. "$1"; COMP_WORDS=(caterva inf) COMP_CWORD=1; _caterva; echo "$COMPREPLY"' \
    sh "$scratch/static-prefix/share/bash-completion/completions/caterva")
[ "$completed" = info ] || fail "bash completes caterva inf to '$completed'"

# The server was left out, whether its library is here or not.
"$scratch/shared-prefix/bin/caterva" create --shape 4 --dtype '<f4' x.b2nd
! "$scratch/shared-prefix/bin/caterva" serve x.b2nd 2>serve.log ||
    fail "caterva serve ran without its server"
grep -q "built without the server" serve.log || fail "caterva serve says $(cat serve.log)"

# ---- Uninstalling ------------------------------------------------------------------

# Files of others stay, in folders of ours, too.
touch static-prefix/bin/other static-prefix/include/other.h
mkdir -p "static-prefix/share/doc/caterva"
touch static-prefix/share/doc/caterva/other
cmake --build static --target uninstall >uninstall.log
left=$(installed static)
[ "$left" = "$(printf '%s\n' bin/other include/other.h share/doc/caterva/other)" ] ||
    fail "uninstall left $left"
[ ! -e "static-prefix/$libdir/cmake/Caterva" ] || fail "uninstall left an empty folder"
! cmake --build static --target uninstall >>uninstall.log 2>&1 ||
    fail "uninstall ran twice and did not say that nothing is installed"

# The DESTDIR of the installation counts, whether it is given again or not. Others are refused.
mkdir -p real/bin
touch real/bin/caterva
for given in env "env DESTDIR=$scratch/stage"; do
    DESTDIR=$scratch/stage cmake --install shared --prefix "$scratch/real" >>uninstall.log
    [ -x "stage$scratch/real/bin/caterva" ] || fail "DESTDIR has no program"
    ! DESTDIR=$scratch/other cmake --build shared --target uninstall >>uninstall.log 2>&1 ||
        fail "uninstall took a DESTDIR that is not that of the installation"
    $given cmake --build shared --target uninstall >>uninstall.log
    left=$(find stage ! -type d)
    [ -z "$left" ] || fail "uninstall with DESTDIR left $left"
    [ -e real/bin/caterva ] || fail "uninstall with DESTDIR deleted a file that is not in it"
done

# A list of CMake cuts these prefixes, and the pieces are paths of others.
for prefix in "vü$scratch/real" "a[b/x" "a]b" "o'neil q\$x"; do
    mkdir -p "odd/$prefix/share/doc/caterva"
    touch "odd/$prefix/share/doc/caterva/other"
    cmake --install shared --prefix "$scratch/odd/$prefix" >>uninstall.log
    cmake --build shared --target uninstall >>uninstall.log
    left=$(cd odd && find . ! -type d)
    [ "$left" = "./$prefix/share/doc/caterva/other" ] ||
        fail "uninstall from $prefix left $left"
    [ -e real/bin/caterva ] || fail "uninstall from $prefix deleted a file of another prefix"
    rm -r odd
done
cmake --install shared --prefix "$scratch/odd;$scratch/real" >>uninstall.log
! cmake --build shared --target uninstall >>uninstall.log 2>&1 ||
    fail "uninstall guessed which files are below a prefix with a semicolon"
[ -e real/bin/caterva ] || fail "uninstall from a prefix with a semicolon deleted another file"

printf '%s\n' "cmake --install build/install --prefix '/tmp/o'\\''neil q'" >make.expected
make -n -C "$source" install PREFIX="/tmp/o'neil q" | grep -e --install | cmp - make.expected ||
    fail "make install does not quote its prefix"

# ---- What is refused ----------------------------------------------------------------

! cmake -S "$source" -B refused -G Ninja -DBUILD_SHARED_LIBS=ON -DCATERVA_TESTS=ON \
    >refused.log 2>&1 ||
    fail "tests were configured for one kind of library"
grep -q "need both kinds of library" refused.log || { cat refused.log; exit 1; }

# ---- Without the command line ---------------------------------------------------------

cmake -S "$source" -B no-cli -G Ninja -DBUILD_SHARED_LIBS=ON -DCATERVA_CLI=OFF >no-cli.log
! grep man1 no-cli/cmake_install.cmake || fail "man pages are installed without their programs"

rm -rf shared static stage odd* real
